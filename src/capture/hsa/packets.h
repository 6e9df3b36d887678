// SPDX-License-Identifier: Apache-2.0
// The event path: packets on their way from a program to a queue of its GPU. A kernel is recorded and gets
// one of the queue's signals; if it had one of the program's, a barrier packet behind it bears that, so the
// program is told by the GPU as before. No lock, allocation or system call, but a thread's first event
// (capture/core/log/thread_log.h).
//
//   pending, signals:   ... done | tail: to be collected ... | head: free ...     one ring a queue, as
//                                                                                 kernels end in order
//
// Threads: `on_packets` is called by the runtime under its lock of the queue. `collect` may be called by any,
// and by several: all but one return at once.
#pragma once
#include "capture/core/log/thread_log.h"
#include "capture/hsa/counters.h"
#include "capture/hsa/runtime.h"

namespace lockstep::capture::hsa {

// What is on its way with one signal of the queue.
struct Pending {
  uint64_t dispatch;  // handle; 0: one that only tells how far the queue has come
  uint64_t packet;    // n-th of those that the queue was given
};

// One intercept queue. The launching thread owns what is marked so; `tail` moves under is_collecting, `head`
// by launches.
struct TracedQueue {
  Queue* queue;
  const Packet* ring;
  uint64_t size;            // packets
  uint64_t bytes;           // of the mapping that holds all of it
  uint64_t barriers_below;  // packets in the queue; see has_room_for_barrier()
  uint16_t number, agent;
  bool is_observed;
  // of the launching thread
  uint64_t head_seen;  // == head
  uint64_t given;      // packets
  uint32_t sequence;
  uint32_t argument_hint;  // of can_read()
  Packet* staging;         // 2 x size
  Signal* signals;
  Pending* pending;
  uint64_t mask;      // of both; their number less 1
  uint64_t capacity;  // signals there are
  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint64_t> tail;
  std::atomic<uint64_t> finished;  // the newest packet that is known to have ended
  std::atomic<bool> is_collecting;
  Counters counters;
};

// Written by OnLoad and, as the mode changes, by the keeper; read for each packet.
struct PacketSettings {
  std::atomic<format::Mode> mode{format::Mode::kOff};
  std::atomic<bool> reads_arguments{true};
};
extern PacketSettings g_packet_settings;
extern Runtime g_runtime;

// The runtime's callback for a batch. It always calls `writer` once, with the batch as it is or with what
// became of it.
void on_packets(const void* packets, uint64_t count, uint64_t first, void* queue, Writer writer);
// Records kernels that have ended, at most so many. How many.
uint64_t collect(TracedQueue& queue, ThreadLog* log, uint64_t most);

}  // namespace lockstep::capture::hsa
