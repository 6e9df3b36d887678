// SPDX-License-Identifier: Apache-2.0
// What a process' GPUs did in each of its steps, from its kernels: reduced here, so that no job holds
// kernels.
#pragma once
#include "model/job.h"
#include "model/trace.h"

namespace lockstep::job::gather {

// Adds gpu_steps and exposed, whose members are rows of the trace's comms. Nothing where the trace has no
// kernel that computes: what communication could be hidden by is then not known.
void add_gpu_steps(const model::Trace& trace, model::JobProcess& process);

}  // namespace lockstep::job::gather
