// SPDX-License-Identifier: Apache-2.0
// A snapshot out of what ncclras prints for people, releases 2.24 to 2.30. The text names those who stand
// out, and counts the others: who these are follows where they are all the rest of their communicator.
#pragma once
#include <optional>
#include <string_view>

#include "readers/ras/ras_model.h"

namespace lockstep::readers::ras {

// Takes the first report out of `text`, with what stands before it; nothing, and all of `text`, where there
// is none.
std::optional<Snapshot> next_report(std::string_view& text);

// True of text in which a report begins.
bool has_report(std::string_view text);

}  // namespace lockstep::readers::ras
