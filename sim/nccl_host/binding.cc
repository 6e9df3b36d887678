// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/binding.h"

#include <cstring>
#include <type_traits>

#include "nccl_host/adapt.h"

namespace lockstep::sim {
namespace {

namespace abi = nccl_abi;

template <class PluginType, class DescriptorType, class ArgsType>
struct Abi {
  using Plugin = PluginType;
  using Descriptor = DescriptorType;
  using Args = ArgsType;
};

void fill_args(int state, uint64_t value, int steps, abi::v1::StateArgs* args) {
  if (state >= abi::kProxyCtrlIdle && state <= abi::kProxyCtrlAppendEnd) {
    args->proxy_ctrl.appended = static_cast<int32_t>(value);
  } else {
    args->proxy_op.trans_size = value;
    args->proxy_op.steps = steps;
  }
}

void fill_args(int state, uint64_t value, int, abi::StateArgsV4* args) {
  if (state >= abi::kProxyCtrlIdle && state <= abi::kProxyCtrlAppendEnd) {
    args->proxy_ctrl.appended = static_cast<int32_t>(value);
  } else if (state == abi::kNetPluginUpdate) {
    args->net_plugin.data = reinterpret_cast<void*>(value);
  } else {
    args->kernel_ch.ptimer = value;  // same eight bytes as proxy_step.trans_size
  }
}

template <class Abi>
class VersionBinding final : public Binding {
 public:
  VersionBinding(const Behaviour& behaviour, void* symbol)
      : behaviour_(behaviour), plugin_(static_cast<typename Abi::Plugin*>(symbol)) {}

  const char* plugin_name() const override { return plugin_->name ? plugin_->name : "(unnamed)"; }

  int init(const CommInfo& comm, int* mask, abi::Logger logger, void** context, Stats* stats) override {
    const uint64_t begin = ticks();
    int result = 0;
    using Init = decltype(plugin_->init);
    if constexpr (std::is_same_v<Init, abi::InitV1>) {
      result = plugin_->init(context, mask);
    } else if constexpr (std::is_same_v<Init, abi::InitV4>) {
      result = plugin_->init(context, mask, comm.name, comm.id, comm.nodes, comm.ranks, comm.rank, logger);
    } else {
      result = plugin_->init(context, comm.id, mask, comm.name, comm.nodes, comm.ranks, comm.rank, logger);
    }
    stats->init.add(ticks() - begin);
    return result;
  }

  void start(void* context, void** handle, const abi::v7::Descriptor& from, Stats* stats) override {
    typename Abi::Descriptor descriptor;
    // The v4 and v5 adapters leave what is not the event's own as it was on the stack.
    const bool garbage = behaviour_.adapted() && behaviour_.api >= 4;
    std::memset(static_cast<void*>(&descriptor), garbage ? 0xa5 : 0, sizeof descriptor);
    adapt(from, behaviour_, &descriptor);
    const uint64_t begin = ticks();
    const int result = plugin_->start_event(context, handle, &descriptor);
    stats->start.add(ticks() - begin);
    stats->failed_calls += result != 0;
    // NCCL's descriptor dies with its stack frame.
    std::memset(static_cast<void*>(&descriptor), 0xdb, sizeof descriptor);
    __asm__ volatile("" : : "r"(&descriptor) : "memory");
  }

  void stop(void* handle, Stats* stats) override {
    const uint64_t begin = ticks();
    const int result = plugin_->stop_event(handle);
    stats->stop.add(ticks() - begin);
    stats->failed_calls += result != 0;
  }

  bool state(void* handle, int state, uint64_t value, int steps, Stats* stats) override {
    const ArgsForm form = args_form(behaviour_, state);
    if (form == ArgsForm::kDropped) return false;
    typename Abi::Args args;
    std::memset(static_cast<void*>(&args), form == ArgsForm::kGarbage ? 0xa5 : 0, sizeof args);
    if (form == ArgsForm::kValid) fill_args(state, value, steps, &args);
    typename Abi::Args* pointer = form == ArgsForm::kNull ? nullptr : &args;
    const uint64_t begin = ticks();
    const int result = plugin_->record_event_state(handle, static_cast<abi::State>(state), pointer);
    stats->state.add(ticks() - begin);
    stats->failed_calls += result != 0;
    return true;
  }

  void finalize(void* context, Stats* stats) override {
    const uint64_t begin = ticks();
    const int result = plugin_->finalize(context);
    stats->finalize.add(ticks() - begin);
    stats->failed_calls += result != 0;
  }

 private:
  Behaviour behaviour_;
  typename Abi::Plugin* plugin_;
};

ArgsForm old_core_form(int state) {
  if (state <= abi::kProxyOpRecvDone) return ArgsForm::kValid;
  if (state <= abi::kProxyStepRecvGpuWait) return ArgsForm::kNull;
  return state <= abi::kProxyCtrlAppendEnd ? ArgsForm::kValid : ArgsForm::kDropped;
}

}  // namespace

ArgsForm args_form(const Behaviour& behaviour, int state) {
  const int api = behaviour.api;
  if (behaviour.old_core && api <= 3) return old_core_form(state);
  if (state <= abi::kProxyOpRecvDone) return ArgsForm::kDropped;  // no core since 2.27 makes these
  if (api <= 3) {
    if (state > abi::kProxyCtrlAppendEnd) return ArgsForm::kDropped;
    return state <= abi::kProxyStepRecvGpuWait ? ArgsForm::kZeroed : ArgsForm::kValid;
  }
  const bool garbage = behaviour.garbage_args || behaviour.adapted();
  switch (state) {
    case abi::kProxyOpInProgress:
      return garbage ? ArgsForm::kGarbage : ArgsForm::kZeroed;
    case abi::kGroupStartApiStop:
    case abi::kGroupEndApiStart:
      if (api == 4) return ArgsForm::kDropped;
      if (garbage) return ArgsForm::kGarbage;
      return api >= 7 ? ArgsForm::kZeroed : ArgsForm::kNull;
    case abi::kKernelPhaseStop:
      return api >= 7 ? ArgsForm::kValid : ArgsForm::kDropped;
    default:
      return ArgsForm::kValid;
  }
}

bool representable(int api, uint64_t type) {
  constexpr uint64_t kNewest[] = {0,
                                  abi::kTypeProxyCtrl,
                                  abi::kTypeProxyCtrl,
                                  abi::kTypeNetPlugin,
                                  abi::kTypeNetPlugin,
                                  abi::kTypeKernelLaunch,
                                  abi::kTypeCeBatch,
                                  abi::kTypeKernelPhase};
  return type <= kNewest[api];
}

std::unique_ptr<Binding> make_binding(const Behaviour& behaviour, void* symbol) {
  switch (behaviour.api) {
#define LOCKSTEP_VERSION(n)                                                                             \
  case n:                                                                                               \
    return std::make_unique<                                                                            \
        VersionBinding<Abi<abi::v##n::Plugin, abi::v##n::Descriptor, abi::v##n::StateArgs>>>(behaviour, \
                                                                                             symbol);
    LOCKSTEP_VERSION(1)
    LOCKSTEP_VERSION(2)
    LOCKSTEP_VERSION(3)
    LOCKSTEP_VERSION(4)
    LOCKSTEP_VERSION(5)
    LOCKSTEP_VERSION(6)
    LOCKSTEP_VERSION(7)
#undef LOCKSTEP_VERSION
    default:
      return nullptr;
  }
}

}  // namespace lockstep::sim
