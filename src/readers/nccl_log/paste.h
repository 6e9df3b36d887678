// SPDX-License-Identifier: Apache-2.0
// Lines that were pasted into a form of one line: blanks stand where they ended.
#pragma once
#include <cstddef>
#include <string_view>

namespace lockstep::readers::nccl_log {

// Whether the beginning of a file is such a paste: next to no line ends, and words with which lines begin.
bool is_paste(std::string_view text);

// Length of the first of the lines that were pasted, with the blank behind it; of the last one, of all.
size_t pasted_line(std::string_view text);

}  // namespace lockstep::readers::nccl_log
