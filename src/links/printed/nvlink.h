// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi nvlink` printed of a host's NVLinks: -s (states), -e (errors since the driver was loaded
// or they were cleared), or one after the other. It prints no PCI addresses: a GPU's UUID stands in their
// place.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_nvlink(std::string_view text);
// An error if GPUs or links have fewer lines than their siblings: the text is cut.
Result<LinksRecord> parse_nvlink(std::string_view text, const std::string& where);

}  // namespace lockstep::links
