// The pool inside XLA programs on the CPU, through XLA's foreign function interface.
//
// A handle is uint32 [2]: the pool's number and how many calls went before. Passing it from call to call keeps their
// order. Results are copied from the engine's batch into XLA's buffers.
#include "bindings/bindings.hpp"

#ifdef PLACEMENT_XLA
#include <cstring>
#include <string>

#include "pool/environment_pool.hpp"
#include "xla/ffi/api/ffi.h"

namespace nb = nanobind;
namespace ffi = xla::ffi;

namespace placement {
namespace {

using Handle = ffi::Buffer<ffi::U32, 1>;
using HandleResult = ffi::ResultBuffer<ffi::U32, 1>;
using Integers = ffi::Buffer<ffi::S32, 1>;
using IntegersResult = ffi::ResultBuffer<ffi::S32, 1>;

// Runs `call(pool)`; exceptions become errors of the program.
template <typename Call>
ffi::Error with_pool(const Handle& handle, HandleResult& next, Call call) {
  const std::uint32_t* number = handle.typed_data();
  const std::shared_ptr<EnvironmentPool> pool = PoolRegistry::instance().find(number[0]);
  if (!pool) return ffi::Error::InvalidArgument("the pool of this handle is no more");
  try {
    call(*pool);
  } catch (const std::exception& error) {
    return ffi::Error::InvalidArgument(error.what());
  }
  next->typed_data()[0] = number[0];
  next->typed_data()[1] = number[1] + 1;
  return ffi::Error::Success();
}

void copy_bytes(const void* from, std::size_t count, std::size_t item, void* to) { std::memcpy(to, from, count * item); }

// Where XLA wants a batch.
struct Outputs {
  IntegersResult design, step;
  ffi::ResultBuffer<ffi::U8, 3> mask;
  ffi::ResultBuffer<ffi::F32, 4> maps;
  ffi::ResultBuffer<ffi::F32, 2> x, y;
  ffi::ResultBuffer<ffi::F32, 1> reward;
  ffi::ResultBuffer<ffi::PRED, 1> terminated, dead_end;
  ffi::ResultBuffer<ffi::F32, 2> costs;
  IntegersResult elapsed_step, env_id;

  // Throws std::invalid_argument where the batch has another shape than the program was made for.
  void fill(Block& block) {
    const ObservationShape& shape = block.batch.shape();
    const auto size = static_cast<std::size_t>(block.size);
    if (shape.compact) throw std::invalid_argument("a pool of compact maps has no place in a program: make it without");
    if (env_id->element_count() != size || mask->element_count() != size * shape.cells() ||
        x->element_count() != size * shape.steps) {
      throw std::invalid_argument("the batch holds " + std::to_string(size) + " results, the program was made for " +
                                  std::to_string(env_id->element_count()));
    }
    const ObservationSlot observation = block.batch.observation(0);
    const StepSlot brought = block.batch.step(0);
    copy_bytes(observation.design, size, 4, design->typed_data());
    copy_bytes(observation.step, size, 4, step->typed_data());
    copy_bytes(observation.mask, size * shape.cells(), 1, mask->typed_data());
    copy_bytes(observation.maps, size * shape.cells() * kMaps, 4, maps->typed_data());
    copy_bytes(observation.x, size * shape.steps, 4, x->typed_data());
    copy_bytes(observation.y, size * shape.steps, 4, y->typed_data());
    copy_bytes(brought.reward, size, 4, reward->typed_data());
    copy_bytes(brought.terminated, size, 1, terminated->typed_data());
    copy_bytes(brought.dead_end, size, 1, dead_end->typed_data());
    for (std::size_t i = 0; i < size * kCosts; ++i) costs->typed_data()[i] = static_cast<float>(brought.costs[i]);
    copy_bytes(brought.elapsed_step, size, 4, elapsed_step->typed_data());
    copy_bytes(block.batch.env_id(), size, 4, env_id->typed_data());
  }
};

void require_equal(const Integers& actions, const Integers& env_ids) {
  if (actions.element_count() != env_ids.element_count()) {
    throw std::invalid_argument("one action per environment is needed");
  }
}

// Gives the block back even where it does not fit.
void fill_and_release(EnvironmentPool& pool, Block* block, Outputs& outputs) {
  try {
    outputs.fill(*block);
  } catch (...) {
    pool.release(block);
    throw;
  }
  pool.release(block);
}

ffi::Error send(Handle handle, Integers actions, Integers env_ids, HandleResult next) {
  return with_pool(handle, next, [&](EnvironmentPool& pool) {
    require_equal(actions, env_ids);
    pool.send(actions.typed_data(), env_ids.typed_data(), static_cast<int>(env_ids.element_count()));
  });
}

#define PLACEMENT_OUTPUT_PARAMETERS                                                                                 \
  HandleResult next, IntegersResult design, IntegersResult step_, ffi::ResultBuffer<ffi::U8, 3> mask,               \
      ffi::ResultBuffer<ffi::F32, 4> maps, ffi::ResultBuffer<ffi::F32, 2> x, ffi::ResultBuffer<ffi::F32, 2> y,      \
      ffi::ResultBuffer<ffi::F32, 1> reward, ffi::ResultBuffer<ffi::PRED, 1> terminated,                            \
      ffi::ResultBuffer<ffi::PRED, 1> dead_end, ffi::ResultBuffer<ffi::F32, 2> costs, IntegersResult elapsed_step, \
      IntegersResult env_id
#define PLACEMENT_OUTPUTS \
  Outputs { design, step_, mask, maps, x, y, reward, terminated, dead_end, costs, elapsed_step, env_id }

ffi::Error recv(Handle handle, double timeout, PLACEMENT_OUTPUT_PARAMETERS) {
  Outputs outputs = PLACEMENT_OUTPUTS;
  return with_pool(handle, next, [&](EnvironmentPool& pool) {
    fill_and_release(pool, pool.recv(timeout, [] {}), outputs);
  });
}

ffi::Error step(Handle handle, Integers actions, Integers env_ids, double timeout, PLACEMENT_OUTPUT_PARAMETERS) {
  Outputs outputs = PLACEMENT_OUTPUTS;
  return with_pool(handle, next, [&](EnvironmentPool& pool) {
    require_equal(actions, env_ids);
    const int count = static_cast<int>(env_ids.element_count());
    fill_and_release(pool, pool.step(actions.typed_data(), env_ids.typed_data(), count, timeout, [] {}), outputs);
  });
}

template <typename Binding>
auto with_outputs(Binding binding) {
  return std::move(binding)
      .template Ret<ffi::Buffer<ffi::U32, 1>>()
      .template Ret<ffi::Buffer<ffi::S32, 1>>()
      .template Ret<ffi::Buffer<ffi::S32, 1>>()
      .template Ret<ffi::Buffer<ffi::U8, 3>>()
      .template Ret<ffi::Buffer<ffi::F32, 4>>()
      .template Ret<ffi::Buffer<ffi::F32, 2>>()
      .template Ret<ffi::Buffer<ffi::F32, 2>>()
      .template Ret<ffi::Buffer<ffi::F32, 1>>()
      .template Ret<ffi::Buffer<ffi::PRED, 1>>()
      .template Ret<ffi::Buffer<ffi::PRED, 1>>()
      .template Ret<ffi::Buffer<ffi::F32, 2>>()
      .template Ret<ffi::Buffer<ffi::S32, 1>>()
      .template Ret<ffi::Buffer<ffi::S32, 1>>();
}

XLA_FFI_DEFINE_HANDLER(send_handler, send,
                       ffi::Ffi::Bind().Arg<Handle>().Arg<Integers>().Arg<Integers>().Ret<Handle>());
XLA_FFI_DEFINE_HANDLER(recv_handler, recv, with_outputs(ffi::Ffi::Bind().Arg<Handle>().Attr<double>("timeout")));
XLA_FFI_DEFINE_HANDLER(step_handler, step,
                       with_outputs(ffi::Ffi::Bind().Arg<Handle>().Arg<Integers>().Arg<Integers>().Attr<double>(
                           "timeout")));

nb::capsule capsule(XLA_FFI_Handler* handler) { return nb::capsule(reinterpret_cast<void*>(handler)); }

}  // namespace

void bind_xla(nb::module_& m) {
  nb::dict handlers;
  handlers["placement_pool_send"] = capsule(send_handler);
  handlers["placement_pool_recv"] = capsule(recv_handler);
  handlers["placement_pool_step"] = capsule(step_handler);
  m.attr("XLA_HANDLERS") = handlers;
}

}  // namespace placement

#else

namespace placement {

void bind_xla(nanobind::module_& m) { m.attr("XLA_HANDLERS") = nanobind::dict(); }

}  // namespace placement

#endif
