// SPDX-License-Identifier: Apache-2.0
// What `ibstat` of rdma-core printed about a host's InfiniBand and RoCE ports: as the files of /sys that it
// draws it from.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_ibstat(std::string_view text);
// An error if a card has fewer ports than it counts, or a port is cut.
Result<LinksRecord> parse_ibstat(std::string_view text, const std::string& where);

}  // namespace lockstep::links
