// SPDX-License-Identifier: Apache-2.0
// Lines that a terminal, or what was pasted from one, broke at its right edge.
#pragma once
#include <cstddef>
#include <string_view>

namespace lockstep::readers::nccl_log {

// Where the lines of a text were broken, in bytes; 0: they were not. `text`: the beginning of a file. Several
// lines of one length, most of which go on in the next one, show it. `has_markup`: of lines without it.
size_t wrap_width(std::string_view text, bool has_markup = false);
// A line that may go on what the one before it began: no head, no time, no launcher's mark at its beginning.
bool may_continue(std::string_view line);
// Both begin with one mark of who writes ("stderr:"), so that the second begins anew.
bool begin_alike(std::string_view previous, std::string_view line);

}  // namespace lockstep::readers::nccl_log
