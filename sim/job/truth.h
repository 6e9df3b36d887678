// SPDX-License-Identifier: Apache-2.0
// truth.json beside the process files: what the job was, what is wrong with it, and what its clocks really
// show.
#pragma once
#include <string>

#include "job/job.h"

namespace lockstep::sim::job {

std::string truth_json(const Job& job, const Timeline& timeline, const JobResult& result);

}  // namespace lockstep::sim::job
