// SPDX-License-Identifier: Apache-2.0
// What p2pBandwidthLatencyTest of NVIDIA's cuda-samples printed, as a record of links that can be judged:
// rates of pairs with peer access, one way, both ways and, with --p2p_read, read, and the GPUs' own
// latencies. Cells between a GPU and itself are its memory, and matrices without peer access the way through
// the host: no links.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_p2p_matrices(std::string_view text);
// An error if no pair of GPUs is in it, or a matrix is cut.
Result<LinksRecord> parse_p2p_matrices(std::string_view text, const std::string& where);

}  // namespace lockstep::links
