// SPDX-License-Identifier: Apache-2.0
// A plugin as RCCL's own are: version 6 alone, with RCCL's structs (capture/nccl/abi/rccl.h), which asks for
// diagnoses and copies what it gets whole. To RCCL_LOG it appends a line a call:
//   start TYPE HANDLE PARENT COMM_HASH OP_COUNT FUNC TOTAL_BYTES RAW_STEPS   (ProxyOp; of others TYPE alone)
//   state STATE HANDLE KIND FLAGS VALUE VALUE2                               (ProxyDiagUpdate; else STATE)
//   stop HANDLE
// RCCL_MASK sets the mask (0x8018, as its proxy trace does).
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "capture/nccl/abi.h"

namespace {

namespace abi = lockstep::nccl_abi;
namespace rccl = lockstep::nccl_abi::rccl_v6;

uint64_t g_handles = 0x1000;

FILE* log_file() {
  static FILE* const file = [] {
    const char* path = std::getenv("RCCL_LOG");
    return path != nullptr ? std::fopen(path, "a") : nullptr;
  }();
  return file;
}

template <class... Values>
void write_line(const char* format, Values... values) {
  if (log_file() == nullptr) return;
  std::fprintf(log_file(), format, values...);
  std::fflush(log_file());
}

abi::NcclResult init(void** context, uint64_t, int* mask, const char*, int, int, int, abi::Logger) {
  const char* asked = std::getenv("RCCL_MASK");
  const int wanted = asked != nullptr ? static_cast<int>(std::strtol(asked, nullptr, 0)) : 0x8018;
  __atomic_store_n(mask, wanted, __ATOMIC_RELAXED);  // others read it meanwhile
  *context = &g_handles;
  return 0;
}

abi::NcclResult start_event(void*, void** handle, rccl::Descriptor* descriptor) {
  const rccl::Descriptor d = *descriptor;
  *handle = reinterpret_cast<void*>(g_handles += 16);
  if (d.type != abi::kTypeProxyOp) {
    write_line("start %" PRIx64 "\n", d.type);
    return 0;
  }
  write_line("start 8 %p %p %" PRIx64 " %" PRId64 " %d %u %d\n", *handle, d.parent, d.proxy_op.comm_hash,
             d.proxy_op.op_count, d.proxy_op.func, d.proxy_op.total_bytes, d.proxy_op.raw_steps);
  return 0;
}

abi::NcclResult stop_event(void* handle) {
  write_line("stop %p\n", handle);
  return 0;
}

abi::NcclResult record_event_state(void* handle, abi::State state, rccl::StateArgs* args) {
  const rccl::StateArgs all = args != nullptr ? *args : rccl::StateArgs{};
  if (state == rccl::kProxyDiagUpdate) {
    const rccl::ProxyDiag& diag = all.proxy_diag;
    write_line("state 31 %p %u %u %" PRId64 " %" PRId64 "\n", handle, unsigned{diag.kind},
               unsigned{diag.flags}, diag.value, diag.value2);
  } else {
    write_line("state %d\n", static_cast<int>(state));
  }
  return 0;
}

abi::NcclResult finalize(void*) { return 0; }

}  // namespace

extern "C" __attribute__((visibility("default"))) rccl::Plugin ncclProfiler_v6;
rccl::Plugin ncclProfiler_v6 = {"ProxyTrace", init, start_event, stop_event, record_event_state, finalize};
