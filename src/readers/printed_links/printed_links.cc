// SPDX-License-Identifier: Apache-2.0
#include "readers/printed_links/printed_links.h"

#include <string_view>

#include "links/printed/printed.h"

namespace lockstep::readers::printed_links {
namespace {

bool sniff(std::span<const std::byte> first_bytes) {
  return links::is_any({reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size()});
}

}  // namespace

// No operations, so no source: the verdict reads these files by links/printed/printed.h.
const Format kFormat{.name = "printed_links", .summary = "checks of links", .sniff = sniff, .open = nullptr};

}  // namespace lockstep::readers::printed_links
