// SPDX-License-Identifier: Apache-2.0
// CUPTI knows one pair of buffer callbacks a process and one switch a kind of record, and the last caller has
// them: two tools that do not know of each other both lose their data. So this library stands between CUPTI
// and the profilers of the process (interpose.cc): it is preloaded, and their calls of CUPTI come here first.
//
//   CUPTI --records--> completed() --+--> our file
//                                    '--> copies of what a profiler enabled, in buffers that it gave
//
// A kind is on while anyone wants it. A profiler's buffers are asked for, filled and returned as CUPTI would.
// Records that are ours alone are not handed on; what a profiler gets is what CUPTI would have given it.
// While ours is not active its calls pass through unchanged. Threads: any. A lock orders switches; it is not
// held while records are delivered, or a profiler is called.
#pragma once
#include "capture/cuda/cupti_abi.h"
#include "capture/cuda/cupti_library.h"

namespace lockstep::capture::cuda {

struct Wanted {
  bool copies = false;
};

// Registers our callbacks and switches our records on. False: CUPTI refused, or another tool holds it; `why`
// says so.
bool begin(const CuptiLibrary& library, Wanted wanted, char* why, size_t bytes);
// Switches our records off, but for what a profiler wants; callbacks stay, so that nothing of its is lost.
// begin() may follow.
void end();
bool active();
// Asks CUPTI for what is complete; `forced`: also for what is not. Reads the clocks.
void flush(bool forced);
// The same, but only where CUPTI has not brought a full buffer for half a second. Launches wait for a flush:
// asked ten times a second, at 100,000 kernels a second, it cost an 8-byte all-reduce a quarter of its time
// on 4 x H200.
void flush_if_quiet();
// Gives a profiler what it has so far, as often as it asked CUPTI for that. Our own thread, now and then.
void hand_over_if_due();
// The last one: from here on nothing is handed to profilers, which may be gone.
void flush_at_exit();
// True while this thread is in a call of a profiler that came through here, which may be starting CUDA.
bool in_profilers_call();

// What a profiler asks of CUPTI.
cupti::Result their_callbacks(cupti::BufferRequested request, cupti::BufferCompleted complete);
cupti::Result their_enable(cupti::Kind kind);
cupti::Result their_enable_and_dump(cupti::Kind kind);
cupti::Result their_disable(cupti::Kind kind);
cupti::Result their_enable_context(void* context, cupti::Kind kind);
cupti::Result their_disable_context(void* context, cupti::Kind kind);
cupti::Result their_driver_api(uint32_t call, uint8_t enable);
cupti::Result their_flush_all(uint32_t flag);
cupti::Result their_flush(void* context, uint32_t stream, uint32_t flag);
cupti::Result their_flush_period(uint32_t ms);
cupti::Result their_dropped_records(void* context, uint32_t stream, size_t* dropped);
cupti::Result their_timestamp(cupti::Timestamp timestamp);
cupti::Result their_thread_id_type(uint32_t type);
cupti::Result their_subscribe(void** subscriber, void* callback, void* data);
cupti::Result their_subscribe_v2(void** subscriber, void* callback, void* data, void* parameters);
cupti::Result their_unsubscribe(void* subscriber);
cupti::Result their_finalize();

}  // namespace lockstep::capture::cuda
