// The pool inside XLA programs on the CPU, through XLA's foreign function interface.
//
// A handle is uint32 [2]: the pool's number and the number of previous calls. Passing it from call to call keeps their
// order. Results are copied from the engine's batch into XLA's buffers.
#include "bindings/bindings.hpp"

#ifdef PLACEMENT_XLA
#include <cstring>
#include <string>
#include <vector>

#include "pool/environment_pool.hpp"
#include "xla/ffi/api/ffi.h"

namespace nb = nanobind;
namespace ffi = xla::ffi;

namespace placement {
namespace {

using Handle = ffi::Buffer<ffi::U32, 1>;
using HandleResult = ffi::ResultBuffer<ffi::U32, 1>;
using Integers = ffi::Buffer<ffi::S32, 1>;

// Runs `call(pool)`; exceptions become errors of the program.
template <typename Call>
ffi::Error with_pool(const Handle& handle, HandleResult& next, Call call) {
  const std::uint32_t* number = handle.typed_data();
  const std::shared_ptr<EnvironmentPool> pool = PoolRegistry::instance().find(number[0]);
  if (!pool) return ffi::Error::InvalidArgument("the pool of this handle no longer exists");
  try {
    call(*pool);
  } catch (const std::exception& error) {
    return ffi::Error::InvalidArgument(error.what());
  }
  next->typed_data()[0] = number[0];
  next->typed_data()[1] = number[1] + 1;
  return ffi::Error::Success();
}

// Copies a batch to XLA's buffers, in the order of placement.engine.xla. Throws std::invalid_argument if the batch has
// another shape than the program was compiled for.
void fill(const ffi::RemainingRets& outputs, Block& block) {
  constexpr std::size_t kEnvId = 11, kOutputs = 12;
  if (outputs.size() != kOutputs) throw std::invalid_argument("a batch must have 12 arrays");
  const ObservationShape& shape = block.batch.shape();
  const auto size = static_cast<std::size_t>(block.size), cells = static_cast<std::size_t>(shape.cells());
  if (shape.compact) {
    throw std::invalid_argument("compiled programs do not support compact maps: create the pool with "
                                "compact_maps=False");
  }
  std::size_t next = 0;
  const auto copy = [&](const void* from, std::size_t bytes) {
    const ffi::AnyBuffer to = **outputs.get<ffi::AnyBuffer>(next++);
    if (to.size_bytes() != bytes) {
      throw std::invalid_argument("the batch has " + std::to_string(size) + " results; the program was compiled for " +
                                  std::to_string((*outputs.get<ffi::AnyBuffer>(kEnvId))->element_count()));
    }
    std::memcpy(to.untyped_data(), from, bytes);
  };
  const ObservationSlot observation = block.batch.observation(0);
  const StepSlot step = block.batch.step(0);
  const std::vector<float> costs(step.costs, step.costs + size * kCosts);
  copy(observation.design, size * 4);
  copy(observation.step, size * 4);
  copy(observation.mask, size * cells);
  copy(observation.maps, size * cells * kMaps * 4);
  copy(observation.x, size * shape.steps * 4);
  copy(observation.y, size * shape.steps * 4);
  copy(step.reward, size * 4);
  copy(step.terminated, size);
  copy(step.dead_end, size);
  copy(costs.data(), costs.size() * 4);
  copy(step.elapsed_step, size * 4);
  copy(block.batch.env_id(), size * 4);
}

void require_equal(const Integers& actions, const Integers& env_ids) {
  if (actions.element_count() != env_ids.element_count()) {
    throw std::invalid_argument("one action per environment is needed");
  }
}

// Releases the block even if it does not fit.
void fill_and_release(EnvironmentPool& pool, Block* block, const ffi::RemainingRets& outputs) {
  try {
    fill(outputs, *block);
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

ffi::Error recv(Handle handle, double timeout, HandleResult next, ffi::RemainingRets outputs) {
  return with_pool(handle, next, [&](EnvironmentPool& pool) {
    fill_and_release(pool, pool.recv(timeout, [] {}), outputs);
  });
}

ffi::Error step(Handle handle, Integers actions, Integers env_ids, double timeout, HandleResult next,
                ffi::RemainingRets outputs) {
  return with_pool(handle, next, [&](EnvironmentPool& pool) {
    require_equal(actions, env_ids);
    const int count = static_cast<int>(env_ids.element_count());
    fill_and_release(pool, pool.step(actions.typed_data(), env_ids.typed_data(), count, timeout, [] {}), outputs);
  });
}

XLA_FFI_DEFINE_HANDLER(send_handler, send,
                       ffi::Ffi::Bind().Arg<Handle>().Arg<Integers>().Arg<Integers>().Ret<Handle>());
XLA_FFI_DEFINE_HANDLER(recv_handler, recv,
                       ffi::Ffi::Bind().Arg<Handle>().Attr<double>("timeout").Ret<Handle>().RemainingRets());
XLA_FFI_DEFINE_HANDLER(step_handler, step,
                       ffi::Ffi::Bind().Arg<Handle>().Arg<Integers>().Arg<Integers>().Attr<double>("timeout").Ret<Handle>()
                           .RemainingRets());

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
