// SPDX-License-Identifier: Apache-2.0
// The plugin that does nothing: every callback returns success at once, every event gets a handle. What a
// benchmark subtracts. EMPTY_MASK sets the activation mask (any base); without it everything is on.
#include <cstdlib>

#include "capture/nccl/abi.h"

namespace {

namespace abi = lockstep::nccl_abi;

int context_object;

int mask_from_environment() {
  const char* text = std::getenv("EMPTY_MASK");
  return text ? static_cast<int>(std::strtol(text, nullptr, 0)) : 0xffff;
}

abi::NcclResult init(void** context, int* mask) {
  *context = &context_object;
  __atomic_store_n(mask, mask_from_environment(), __ATOMIC_RELAXED);
  return 0;
}
abi::NcclResult init_v4(void** context, int* mask, const char*, uint64_t, int, int, int, abi::Logger) {
  return init(context, mask);
}
abi::NcclResult init_v5(void** context, uint64_t, int* mask, const char*, int, int, int, abi::Logger) {
  return init(context, mask);
}
template <class Descriptor>
abi::NcclResult start_event(void*, void** handle, Descriptor*) {
  *handle = &context_object;
  return 0;
}
abi::NcclResult stop_event(void*) { return 0; }
template <class Args>
abi::NcclResult record_event_state(void*, abi::State, Args*) {
  return 0;
}
abi::NcclResult finalize(void*) { return 0; }

}  // namespace

#define EMPTY_PLUGIN(n, init_function)                                                   \
  extern "C" __attribute__((visibility("default"))) abi::v##n::Plugin ncclProfiler_v##n; \
  abi::v##n::Plugin ncclProfiler_v##n = {"empty",                                        \
                                         init_function,                                  \
                                         start_event<abi::v##n::Descriptor>,             \
                                         stop_event,                                     \
                                         record_event_state<abi::v##n::StateArgs>,       \
                                         finalize};
EMPTY_PLUGIN(1, init)
EMPTY_PLUGIN(2, init)
EMPTY_PLUGIN(3, init)
EMPTY_PLUGIN(4, init_v4)
EMPTY_PLUGIN(5, init_v5)
EMPTY_PLUGIN(6, init_v5)
EMPTY_PLUGIN(7, init_v5)
#undef EMPTY_PLUGIN
