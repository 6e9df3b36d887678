// SPDX-License-Identifier: Apache-2.0
// What happened to GPUs while their counters were sampled: slowed clocks, memory errors, Xids.
#pragma once
#include "links/judge/samples.h"

namespace lockstep::links {

// Adds to `gpu_troubles` and `sm_clocks` of the host. A slowed clock is a warning from 10 s and a tenth of
// the time on: less than that costs a job less than a tenth even if the GPU stood still.
void judge_gpus(const SampleLog& log, HostSamples& host);

}  // namespace lockstep::links
