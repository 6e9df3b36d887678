// SPDX-License-Identifier: Apache-2.0
// Makes the model's rows of one process of an export.
#pragma once
#include <map>
#include <string>

#include "model/trace.h"
#include "readers/common/world.h"
#include "readers/nsys/recording.h"

namespace lockstep::readers::nsys {

// A process of an export, and its place in the run. Pointers into the source, which outlives it.
struct Placed {
  const Export* of = nullptr;
  const ExportedProcess* process = nullptr;
  std::string clock;
  std::map<uint32_t, int32_t> gpus;  // run-wide numbers, by device
};

// What the process says of the communicators that it makes, as far as one GPU of it is in each.
std::vector<common::Membership> memberships(const ExportedProcess& process);

// `trace` is empty. Several may be made at once, each into its own trace.
void make_trace(const Placed& placed, const common::World& world, model::Trace& trace);

}  // namespace lockstep::readers::nsys
