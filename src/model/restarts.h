// SPDX-License-Identifier: Apache-2.0
// Launchers that start ranks again after a failure leave the files of each attempt in one run.
#pragma once
#include <vector>

#include "model/job.h"

namespace lockstep::model {

// By process: another one of its rank began after the last sign of life of this one.
std::vector<bool> replaced_processes(const Job& job);

}  // namespace lockstep::model
