// SPDX-License-Identifier: Apache-2.0
// What a host's links were used for while a job ran, by what they moved: no fault of theirs.
#pragma once
#include "links/judge/samples.h"

namespace lockstep::links {

// Adds to `uses`, `sent` and `nvlink_moved` of the host.
void judge_use(const SampleLog& log, HostSamples& host);

}  // namespace lockstep::links
