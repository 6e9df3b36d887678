// SPDX-License-Identifier: Apache-2.0
// The functions of CUPTI through which profilers share it with us; what they do is in sharing.h. Preloaded,
// these come before libcupti's in the loader's search.
#include "capture/cuda/sharing.h"

#define LOCKSTEP_CUPTI \
  extern "C" __attribute__((visibility("default"))) lockstep::capture::cuda::cupti::Result

namespace cuda = lockstep::capture::cuda;
using cuda::cupti::BufferCompleted;
using cuda::cupti::BufferRequested;
using cuda::cupti::Kind;
using cuda::cupti::Timestamp;

LOCKSTEP_CUPTI cuptiActivityRegisterCallbacks(BufferRequested request, BufferCompleted complete) {
  return cuda::their_callbacks(request, complete);
}
LOCKSTEP_CUPTI cuptiActivityEnable(Kind kind) { return cuda::their_enable(kind); }
LOCKSTEP_CUPTI cuptiActivityEnableAndDump(Kind kind) { return cuda::their_enable_and_dump(kind); }
LOCKSTEP_CUPTI cuptiActivityDisable(Kind kind) { return cuda::their_disable(kind); }
LOCKSTEP_CUPTI cuptiActivityEnableContext(void* context, Kind kind) {
  return cuda::their_enable_context(context, kind);
}
LOCKSTEP_CUPTI cuptiActivityDisableContext(void* context, Kind kind) {
  return cuda::their_disable_context(context, kind);
}
LOCKSTEP_CUPTI cuptiActivityEnableDriverApi(uint32_t call, uint8_t enable) {
  return cuda::their_driver_api(call, enable);
}
LOCKSTEP_CUPTI cuptiActivityFlushAll(uint32_t flag) { return cuda::their_flush_all(flag); }
LOCKSTEP_CUPTI cuptiActivityFlush(void* context, uint32_t stream, uint32_t flag) {
  return cuda::their_flush(context, stream, flag);
}
LOCKSTEP_CUPTI cuptiActivityFlushPeriod(uint32_t ms) { return cuda::their_flush_period(ms); }
LOCKSTEP_CUPTI cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* dropped) {
  return cuda::their_dropped_records(context, stream, dropped);
}
LOCKSTEP_CUPTI cuptiActivityRegisterTimestampCallback(Timestamp timestamp) {
  return cuda::their_timestamp(timestamp);
}
LOCKSTEP_CUPTI cuptiSetThreadIdType(uint32_t type) { return cuda::their_thread_id_type(type); }
LOCKSTEP_CUPTI cuptiSubscribe(void** subscriber, void* callback, void* data) {
  return cuda::their_subscribe(subscriber, callback, data);
}
LOCKSTEP_CUPTI cuptiSubscribe_v2(void** subscriber, void* callback, void* data, void* parameters) {
  return cuda::their_subscribe_v2(subscriber, callback, data, parameters);
}
LOCKSTEP_CUPTI cuptiUnsubscribe(void* subscriber) { return cuda::their_unsubscribe(subscriber); }
LOCKSTEP_CUPTI cuptiFinalize() { return cuda::their_finalize(); }
