// SPDX-License-Identifier: Apache-2.0
#include "readers/link_samples/link_samples.h"

#include <string_view>

#include "links/samples/sample_log.h"

namespace lockstep::readers::link_samples {
namespace {

bool sniff(std::span<const std::byte> first_bytes) {
  return std::string_view(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size())
      .starts_with(links::kSampleLogHead);
}

}  // namespace

// No operations, so no source: the verdict reads these files by links/samples/sample_log.h.
const Format kFormat{.name = "link_samples", .summary = "link counters", .sniff = sniff, .open = nullptr};

}  // namespace lockstep::readers::link_samples
