// SPDX-License-Identifier: Apache-2.0
// Queues of GPUs as they are made and destroyed. One lock guards the list; the collector holds it while it
// looks through. Bounded: kMostQueues, kMostSignals of all queues; a queue beyond is plain. A queue gets as
// many signals as it was asked to hold packets while the pool is well filled, then fewer: kernels beyond
// those on their way have no times (counted).
#pragma once
#include "capture/hsa/packets.h"

namespace lockstep::capture::hsa {

inline constexpr uint32_t kMostQueues = 256;
// 128 bytes of the host's memory each. HIP asks for queues of 4,096 packets (5.2.3) to 16,384.
inline constexpr uint64_t kMostSignals = 1 << 17, kMostSignalsOfQueue = 1 << 14;

// In the place of the runtime's functions: they return what the runtime's would. A queue that cannot be
// intercepted is made as the program asked for it, and said to be plain.
Status on_queue_create(Agent agent, uint32_t size, uint32_t type, ErrorCallback callback, void* data,
                       uint32_t private_bytes, uint32_t group_bytes, Queue** queue);
Status on_queue_destroy(Queue* queue);
Status on_counted_acquire(Agent agent, uint32_t type, uint32_t priority, ErrorCallback callback, void* data,
                          uint64_t flags, Queue** queue);
Status on_create_queues(Agent agent, QueueDescriptor* descriptors, uint32_t count);

// Records what has ended on all queues. How many kernels; `open`: how many are on their way.
uint64_t collect_all(ThreadLog* log, uint64_t* open);
// Sums up all queues, also those that are gone.
void sum_counters(uint64_t (&counts)[format::kMostHsaCounters]);
void count(Counter counter);  // of the process, any thread
// When the runtime ends: gives all signals back to it, but those that a GPU may still write.
void drop_queues();

}  // namespace lockstep::capture::hsa
