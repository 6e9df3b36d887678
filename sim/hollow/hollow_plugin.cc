// SPDX-License-Identifier: Apache-2.0
// A plugin whose structs lack functions: v1 has none at all, v4 only init. What chains a plugin has to bear
// with that.
#include "capture/nccl/abi.h"

namespace {

namespace abi = lockstep::nccl_abi;

abi::NcclResult init(void** context, int* mask, const char*, uint64_t, int, int, int, abi::Logger) {
  *context = nullptr;
  __atomic_store_n(mask, 0xff, __ATOMIC_RELAXED);
  return 0;
}

}  // namespace

extern "C" {
extern __attribute__((visibility("default"))) abi::v1::Plugin ncclProfiler_v1;
extern __attribute__((visibility("default"))) abi::v4::Plugin ncclProfiler_v4;
}
abi::v1::Plugin ncclProfiler_v1 = {};
abi::v4::Plugin ncclProfiler_v4 = {nullptr, init, nullptr, nullptr, nullptr, nullptr};
