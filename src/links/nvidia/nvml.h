// SPDX-License-Identifier: Apache-2.0
// NVML, loaded when it is there. Only asks: it changes no setting, clears no counter. A question costs
// microseconds, but a link's counters 0.7 ms each, so they are read once per call of `facts`.
#pragma once
#include <memory>
#include <string>

#include "links/gpu_facts.h"

namespace lockstep::links::nvidia {

// The GPUs as libnvidia-ml.so.1 reports them; `library` is another file to load instead (LOCKSTEP_NVML), for
// tests. Without the library, or if it does not start, `absent` says why.
GpuFacts facts();

}  // namespace lockstep::links::nvidia
