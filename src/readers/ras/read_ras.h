// SPDX-License-Identifier: Apache-2.0
// Files of RAS snapshots by name. A file may hold several, one behind the other.
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "readers/ras/ras_model.h"

namespace lockstep::readers::ras {

// An error: not one snapshot in all of them.
Result<RasModel> read_ras(const std::vector<std::string>& paths);

}  // namespace lockstep::readers::ras
