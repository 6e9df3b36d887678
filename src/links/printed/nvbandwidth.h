// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's nvbandwidth printed as text (releases that print PCI addresses): copies between the host and
// GPUs and between pairs, by copy engines; those of kernels that write. Its tests of all to one, of
// latencies, and of several hosts are left out.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_nvbandwidth(std::string_view text);
// An error if no rate of a link is in it, a matrix is cut, or GPUs have no PCI address.
Result<LinksRecord> parse_nvbandwidth(std::string_view text, const std::string& where);

}  // namespace lockstep::links
