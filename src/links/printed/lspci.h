// SPDX-License-Identifier: Apache-2.0
// What `lspci -vvv`, `-xxxx` or both printed of a host, as root: the PCI tree, width and speed of links, and
// ACS of bridges, as the files of /sys that say the same. GPUs are display controllers and accelerators of
// NVIDIA and AMD. Network cards are InfiniBand and fabric controllers, and Ethernet controllers that can do
// eight lanes: which of these carry RDMA it does not say. They are named by their addresses.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_lspci(std::string_view text);
// An error if it shows no link of any device (that takes root), lists a device twice, or is cut.
Result<LinksRecord> parse_lspci(std::string_view text, const std::string& where);

}  // namespace lockstep::links
