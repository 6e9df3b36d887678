// SPDX-License-Identifier: Apache-2.0
// What a process contributes to a job, without all that says nothing about what it does now: its newest
// operations stay, with the count of all, and what shows how long it has ever been quiet.
#pragma once
#include <cstdint>

#include "model/process_part.h"

namespace lockstep::job::gather {

// Leaves `newest` collectives of each communicator, and as many sends or receives of each lane; of those that
// are older, the longest gap's two and the first that have not ended. Where none are lost, members become
// `counted`.
void keep_newest(model::ProcessPart& part, uint32_t newest);

}  // namespace lockstep::job::gather
