// SPDX-License-Identifier: Apache-2.0
// Who else used a host's GPUs while their links were measured.
#pragma once
#include <map>
#include <string>

#include "links/record.h"

namespace lockstep::links {

// By PCI address, what the GPU did for others: "is in use by pid 77", "sent 38.1 GB of others".
using OthersUse = std::map<std::string, std::string>;
// By the driver's list of processes and its utilization before our own traffic, and by what NVLinks moved
// beyond that traffic.
OthersUse used_by_others(const LinksRecord& record);

}  // namespace lockstep::links
