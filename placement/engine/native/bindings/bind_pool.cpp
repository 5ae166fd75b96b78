#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <deque>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/cost_bindings.hpp"
#include "pool/environment_pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace placement {
namespace {

using Ids = InputVector<std::int32_t>;
using Seeds = InputVector<std::uint64_t>;

int count_of(const Ids& actions, const Ids& env_ids) {
  if (actions.shape(0) != env_ids.shape(0)) throw nb::value_error("one action per environment is needed");
  return static_cast<int>(env_ids.shape(0));
}

const std::uint64_t* data_of(const std::optional<Seeds>& seeds, const Ids& env_ids) {
  if (seeds && seeds->shape(0) != env_ids.shape(0)) throw nb::value_error("one seed per environment is needed");
  return seeds ? seeds->data() : nullptr;
}

EnvironmentConfig config_of(const BoundWeights& weights, const std::string& soft_placer) {
  EnvironmentConfig config;
  config.weights = as_weights(weights);
  config.soft_placer = soft_placer;
  return config;
}

// NumPy views of a batch's memory: the arrays of an observation, reward, terminated, truncated, those of info. They
// live while anything refers to them, and keep `owner` alive.
nb::list batch_views(Batch& batch, nb::handle owner) {
  const ObservationShape& shape = batch.shape();
  const auto size = static_cast<std::size_t>(batch.size()), rows = static_cast<std::size_t>(shape.rows);
  const auto columns = static_cast<std::size_t>(shape.columns), steps = static_cast<std::size_t>(shape.steps);
  const ObservationSlot observation = batch.observation(0);
  const StepSlot step = batch.step(0);
  nb::list views;
  const auto add = [&views, owner](auto* data, std::initializer_list<std::size_t> dimensions) {
    using Scalar = std::remove_pointer_t<decltype(data)>;
    views.append(nb::ndarray<nb::numpy, Scalar>(data, dimensions, owner).cast());
  };
  add(observation.design, {size});
  add(observation.step, {size});
  add(observation.mask, {size, rows, columns});
  if (shape.compact) {
    add(observation.compact_maps, {size, kMaps, rows, columns});
  } else {
    add(observation.maps, {size, kMaps, rows, columns});
  }
  add(observation.x, {size, steps});
  add(observation.y, {size, steps});
  add(step.reward, {size});
  add(reinterpret_cast<bool*>(step.terminated), {size});
  add(reinterpret_cast<bool*>(batch.truncated()), {size});
  add(reinterpret_cast<bool*>(step.dead_end), {size});
  add(step.costs, {size, kCosts});
  add(step.elapsed_step, {size});
  add(batch.env_id(), {size});
  add(batch.rows(), {size});
  add(batch.columns(), {size});
  add(batch.macros(), {size});
  return views;
}

// A batch as returned to Python: (observation, reward, terminated, truncated, info).
class Result {
 public:
  Result() {
    for (const char* name : {"design", "step", "mask", "maps", "x", "y", "", "", "", "dead_end", "costs", "elapsed_step",
                             "env_id", "rows", "columns", "macros"}) {
      names_.push_back(nb::steal(PyUnicode_InternFromString(name)));
    }
  }

  // The first `size` rows of the arrays of `batch_views`.
  nb::tuple operator()(const nb::list& views, const Batch& batch, int size) const {
      nb::dict observation, info;
    std::array<nb::object, kMiddle> middle;
    for (int i = 0; i < static_cast<int>(names_.size()); ++i) {
      nb::object array = views[i];
      if (size < batch.size()) array = array[nb::slice(0, size, 1)];
      if (i >= kObserved && i < kObserved + kMiddle) {
        middle[i - kObserved] = std::move(array);
      } else if (PyDict_SetItem((i < kObserved ? observation : info).ptr(), names_[i].ptr(), array.ptr()) != 0) {
        throw nb::python_error();
      }
    }
    return nb::make_tuple(observation, middle[0], middle[1], middle[2], info);
  }

 private:
  static constexpr int kObserved = 6, kMiddle = 3;
  std::vector<nb::object> names_;
};

// Keeps the pool, and so the memory of its blocks, alive for the arrays that view it.
struct BlockOwner {
  std::shared_ptr<EnvironmentPool> pool;
};

// A block with its arrays. The arrays are made once and lent again once Python holds none of them. (A view of an array,
// and a consumer of its buffer, holds the array.)
struct Lending {
  Block* block;
  nb::list arrays;

  bool returned() const {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(arrays.ptr()); ++i) {
      if (Py_REFCNT(PyList_GET_ITEM(arrays.ptr(), i)) > 1) return false;
    }
    return true;
  }
};

// The pool and its blocks held by Python. Everything but the waiting is done with the global interpreter lock held.
class PythonPool {
 public:
  explicit PythonPool(std::shared_ptr<EnvironmentPool> pool)
      : pool_(std::move(pool)), number_(PoolRegistry::instance().add(pool_)) {}
  ~PythonPool() {
    if (pool_->forked()) {
      new std::shared_ptr<EnvironmentPool>(pool_);  // leaked
      nb::set_leak_warnings(false);           // on purpose
      return;
    }
    PoolRegistry::instance().remove(number_);
    pool_->close();
  }
  PythonPool(const PythonPool&) = delete;
  PythonPool& operator=(const PythonPool&) = delete;

  EnvironmentPool& pool() { return *pool_; }
  std::uint32_t number() const { return number_; }

  nb::tuple recv(double timeout) {
    take_back();
    Block* block = waiting([&] { return pool_->recv(timeout, check_signals); });
    return lend(block);
  }

  nb::tuple step(const Ids& actions, const Ids& env_ids, double timeout) {
    take_back();
    const std::int32_t *action_data = actions.data(), *id_data = env_ids.data();
    const int count = count_of(actions, env_ids);
    return lend(waiting([&] { return pool_->step(action_data, id_data, count, timeout, check_signals); }));
  }

  nb::tuple reset(const Ids& env_ids, const std::optional<Seeds>& seeds, double timeout) {
    take_back();
    const std::int32_t* id_data = env_ids.data();
    const std::uint64_t* seed_data = data_of(seeds, env_ids);
    const int count = static_cast<int>(env_ids.shape(0));
    return lend(waiting([&] { return pool_->reset(id_data, count, seed_data, timeout, check_signals); }));
  }

  nb::tuple observe(const Ids& env_ids) {
    std::unique_ptr<Block> block = pool_->observe(env_ids.data(), static_cast<int>(env_ids.shape(0)));
    Block* raw = block.get();
    nb::capsule owner(block.release(), [](void* data) noexcept { delete static_cast<Block*>(data); });
    return result_(batch_views(raw->batch, owner), raw->batch, raw->size);
  }

 private:
  template <typename Call>
  static Block* waiting(Call call) {
    nb::gil_scoped_release unlocked;
    return call();
  }

  static void check_signals() {
    nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

  nb::tuple lend(Block* block) {
    const auto of_block = [block](const std::unique_ptr<Lending>& lending) { return lending->block == block; };
    auto known = std::find_if(known_.begin(), known_.end(), of_block);
    if (known == known_.end()) {
      nb::list views = batch_views(block->batch, nb::cast(BlockOwner{pool_}));
      known = known_.insert(known, std::make_unique<Lending>(Lending{block, std::move(views)}));
    }
    lent_.push_back(known->get());
    return result_((*known)->arrays, block->batch, block->size);
  }

  // Checks a few lent blocks, oldest first, and returns to the pool those that are no longer in use.
  void take_back() {
    for (std::size_t i = std::min<std::size_t>(lent_.size(), 4); i > 0; --i) {
      Lending* lending = lent_.front();
      lent_.pop_front();
      if (lending->returned()) {
        pool_->release(lending->block);
      } else {
        lent_.push_back(lending);
      }
    }
  }

  std::shared_ptr<EnvironmentPool> pool_;
  std::uint32_t number_;
  Result result_;
  std::vector<std::unique_ptr<Lending>> known_;
  std::deque<Lending*> lent_;
};

PyObject* new_exception(nb::module_& m, const char* name, PyObject* base) {
  PyObject* type = PyErr_NewException((std::string("placement.engine._native.") + name).c_str(), base, nullptr);
  m.attr(name) = nb::handle(type);
  return type;
}

void translate_exceptions(nb::module_& m) {
  static PyObject* illegal = new_exception(m, "IllegalActionError", PyExc_ValueError);
  static PyObject* failure = new_exception(m, "WorkerFailure", PyExc_RuntimeError);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const IllegalAction& error) {
      PyErr_SetObject(illegal, nb::make_tuple(error.action, error.refusal.tuple()).ptr());
    } catch (const WorkerFailure& error) {
      PyErr_SetObject(failure, nb::make_tuple(error.environment, error.what()).ptr());
    } catch (const PoolTimeout& error) {
      PyErr_SetString(PyExc_TimeoutError, error.what());
    }
  });
}

// The engine without a pool: `steps` steps of one environment with random legal actions, writing observations.
void play_alone(std::shared_ptr<Design> design, const BoundWeights& weights,
                const std::string& soft_placer, int steps, std::uint64_t seed) {
  const EnvironmentConfig config = config_of(weights, soft_placer);
  nb::gil_scoped_release unlocked;
  const PlanList designs({design});
  EpisodeScorer scorer(design, config);
  Environment environment(designs.plans[0], 0, config.dead_end_penalty);
  environment.seed(seed);
  ObservationWriter writer(designs.shape);
  Batch batch(designs.shape, 1);
  for (int step = 0; step < steps; ++step) {
    environment.advance(Action(std::max(0, environment.sample_action(designs.shape)), designs.shape), scorer);
    batch.write(0, 0, environment, writer);
  }
}

}  // namespace

void bind_pool(nb::module_& m) {
  translate_exceptions(m);
  m.def("play_alone", &play_alone, nb::kw_only(), "design"_a, "weights"_a, "soft_placer"_a,
        "steps"_a, "seed"_a, "For benchmarks: steps of one environment in a plain loop.");
  nb::class_<BlockOwner>(m, "BlockOwner");
  nb::class_<PythonPool>(m, "EnvironmentPool", "Environments stepped by threads; see placement.engine.pool.")
      .def(
          "__init__",
          [](PythonPool* self, const std::vector<std::shared_ptr<Design>>& designs,
             const std::vector<int>& design_of_env, const BoundWeights& weights,
             double dead_end_penalty, const std::string& soft_placer, int batch_size, int num_threads,
             int thread_affinity_offset, std::uint64_t seed, bool compact_maps,
             const std::vector<std::pair<std::uintptr_t, double>>& terms, int episodes_per_design,
             const std::tuple<int, int, int>& drawn_shape) {
            EnvironmentConfig environment = config_of(weights, soft_placer);
            environment.dead_end_penalty = dead_end_penalty;
            for (const auto& [address, weight] : terms) {
              environment.terms.push_back({reinterpret_cast<const placement_cost_term*>(address), weight});
            }
            const auto [rows, columns, steps] = drawn_shape;
            const PoolOptions config{batch_size,   num_threads,         thread_affinity_offset, seed,
                                     compact_maps, episodes_per_design, {rows, columns, steps}};
            const std::vector<std::shared_ptr<const Design>> shared(designs.begin(), designs.end());
            for (const int design : design_of_env) {
              if (episodes_per_design > 0) break;
              if (design < 0 || design >= static_cast<int>(designs.size())) {
                throw nb::index_error("the design's index is out of range");
              }
            }
            if (design_of_env.empty()) throw nb::value_error("at least one environment is needed");
            new (self) PythonPool(std::make_shared<EnvironmentPool>(shared, design_of_env, environment, config));
          },
          nb::kw_only(), "designs"_a, "design_of_env"_a, "weights"_a, "dead_end_penalty"_a, "soft_placer"_a,
          "batch_size"_a, "num_threads"_a, "thread_affinity_offset"_a, "seed"_a, "compact_maps"_a, "terms"_a,
          "episodes_per_design"_a, "drawn_shape"_a)
      .def_prop_ro("shape",
                   [](PythonPool& self) {
                     const ObservationShape& shape = self.pool().shape();
                     return std::make_tuple(shape.rows, shape.columns, shape.steps);
                   })
      .def_prop_ro("number", &PythonPool::number)
      .def_prop_ro("batch_size", [](PythonPool& self) { return self.pool().batch_size(); })
      .def_prop_ro("num_threads", [](PythonPool& self) { return self.pool().num_threads(); })
      .def("thread_seconds", [](PythonPool& self) { return self.pool().thread_seconds(); })
      .def_prop_ro("closed", [](PythonPool& self) { return self.pool().closed(); })
      .def_prop_ro("in_flight", [](PythonPool& self) { return self.pool().in_flight(); })
      .def("send",
           [](PythonPool& self, Ids actions, Ids env_ids) {
             self.pool().send(actions.data(), env_ids.data(), count_of(actions, env_ids));
           })
      .def("send_reset",
           [](PythonPool& self, Ids env_ids, std::optional<Seeds> seeds) {
             self.pool().send_reset(env_ids.data(), static_cast<int>(env_ids.shape(0)), data_of(seeds, env_ids));
           },
           "env_ids"_a, "seeds"_a.none())
      .def("recv", &PythonPool::recv)
      .def("step", &PythonPool::step)
      .def("reset", &PythonPool::reset, "env_ids"_a, "seeds"_a.none(), "timeout"_a)
      .def("observe", &PythonPool::observe)
      .def("sample_actions",
           [](PythonPool& self, Ids env_ids, OutputVector<std::int32_t> out) {
             if (out.shape(0) != env_ids.shape(0)) throw nb::value_error("out must have one element per environment");
             self.pool().sample_actions(env_ids.data(), static_cast<int>(env_ids.shape(0)), out.data());
           })
      .def("snapshot",
           [](PythonPool& self, int env_id) {
             const std::string bytes = self.pool().snapshot(env_id);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def("restore",
           [](PythonPool& self, int env_id, nb::bytes bytes) {
             self.pool().restore(env_id, std::string(bytes.c_str(), bytes.size()));
           })
      .def("last_placement",
           [](PythonPool& self, int env_id) -> std::optional<std::tuple<int, std::vector<double>, std::vector<double>>> {
             int design = 0;
             std::vector<double> x, y;
             if (!self.pool().last_placement(env_id, &design, &x, &y)) return std::nullopt;
             return std::make_tuple(design, std::move(x), std::move(y));
           })
      .def("wanted_design", [](PythonPool& self, double seconds) { return self.pool().wanted_design(seconds); },
           nb::call_guard<nb::gil_scoped_release>())
      .def("bring_design",
           [](PythonPool& self, int env_id, int number, const std::shared_ptr<Design>& design) {
             nb::gil_scoped_release unlocked;
             self.pool().bring_design(env_id, number, design);
           })
      .def("fail_designs", [](PythonPool& self, const std::string& reason) { self.pool().fail_designs(reason); })
      .def("close", [](PythonPool& self) { self.pool().close(); }, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace placement
