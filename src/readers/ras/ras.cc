// SPDX-License-Identifier: Apache-2.0
// JSON and the client's text for people are one format here: a file may hold both, one behind the other.
#include "readers/ras/ras.h"

#include <string_view>

#include "readers/ras/text_snapshot.h"

namespace lockstep::readers::ras {
namespace {

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  return (has("\"nccl_version\"") && has("\"communicators_count\"")) || has_report(text);
}

}  // namespace

const Format kFormat{.name = "ras",
                     .summary = "snapshots of NCCL's RAS",
                     .sniff = sniff,
                     .open = nullptr,
                     .setting = "ncclras -f json > ras.json on a host of the job, while it hangs",
                     .reports_hangs = true};

}  // namespace lockstep::readers::ras
