// SPDX-License-Identifier: Apache-2.0
// Whether the processes of a run still run. Only this machine's processes can be seen, as long as it has not
// been booted anew since; a process of the same number that started later is another one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/job.h"
#include "run/process_files.h"

namespace lockstep::run {

std::string_view liveness_text(model::Liveness liveness);  // "unknown", "running", "stopped", "gone"

// What this process is doing now; kUnknown for one of another host, boot or pid namespace, or one that /proc
// hides.
model::Liveness look_at(const ProcessIdentity& process);

// Whether the heartbeat of a process that cannot be looked at is of now; both ns since the Unix epoch, on
// clocks of two hosts.
bool beats(int64_t heartbeat_ns, int64_t now_ns);

// Fills JobProcess::liveness and ::beats from the headers of the process files among `paths` (run directories
// and files). A process without a header there (a trace.db) stays unknown. Touches no process: it reads
// /proc.
void set_liveness(const std::vector<std::string>& paths, model::Job& job);

}  // namespace lockstep::run
