// SPDX-License-Identifier: Apache-2.0
// What `nvidia-smi -q` printed of a host's GPUs: why their clocks are low, memory errors, the width of their
// PCIe links, and their place in the NVLink fabric. Sections that were not asked for (-d) are absent.
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "links/record.h"

namespace lockstep::links {

bool is_gpu_query(std::string_view text);
// An error if GPUs are fewer than the text counts, are listed twice, or the last one does not end as the
// others do: the text is cut.
Result<LinksRecord> parse_gpu_query(std::string_view text, const std::string& where);

}  // namespace lockstep::links
