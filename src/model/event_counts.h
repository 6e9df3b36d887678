// SPDX-License-Identifier: Apache-2.0
// How many events of each kind a trace holds, whatever their state: open and unresolved ones count.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "model/event_kind.h"
#include "model/trace.h"

namespace lockstep::model {

using EventCounts = std::array<uint64_t, kEventKinds>;  // by event_kind number

EventCounts count_events(const Trace& trace);

// What is known of the GPUs' work.
struct KernelCounts {
  uint64_t kernels = 0, copies = 0, launches = 0;
  uint64_t communication = 0, joined = 0;  // of the kernels; of these, those whose operation is known
};
// Copies count apart from kernels.
KernelCounts count_kernels(const Trace& trace);
// The places that hold less than half of what the fullest does: those processes had less to do, or a part of
// their record is missing. In ascending order; counts of 0 are among them, and nothing is if all are 0.
std::vector<size_t> uneven_places(std::span<const uint64_t> counts);

}  // namespace lockstep::model
