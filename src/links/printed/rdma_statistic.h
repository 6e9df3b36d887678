// SPDX-License-Identifier: Apache-2.0
// What `rdma statistic` of iproute2 printed of a host's ports, as text or JSON (-j): the counters of the
// cards' drivers, those of /sys/class/infiniband/*/ports/*/hw_counters. They say nothing of states.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_rdma_statistic(std::string_view text);
// An error if a port is listed twice, a counter is no number, or the text is cut.
Result<LinksRecord> parse_rdma_statistic(std::string_view text, const std::string& where);

}  // namespace lockstep::links
