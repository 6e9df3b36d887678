// SPDX-License-Identifier: Apache-2.0
// The network side of one process: its transfers summed by (communicator, peer, channel, direction, device),
// and those that had not ended. `member` is the row of the trace's comms, or as ProcessPart::foreign says.
#pragma once
#include "job/gather/process_part.h"

namespace lockstep::job::gather {

void add_network(const model::Trace& trace, ProcessPart& part);

}  // namespace lockstep::job::gather
