// SPDX-License-Identifier: Apache-2.0
// Which snapshots are of one job: files of several may lie together, and what one job shows says nothing of
// another.
#pragma once
#include <vector>

#include "readers/ras/ras_model.h"

namespace lockstep::analysis::ras_rules {

// Snapshots of one job, by time. At least one.
using Job = std::vector<const readers::ras::Snapshot*>;

// Snapshots that show one communicator or one process are of one job, also through others. The job of the
// newest snapshot first. They point into the model.
std::vector<Job> jobs_of(const readers::ras::RasModel& model);

}  // namespace lockstep::analysis::ras_rules
