// SPDX-License-Identifier: Apache-2.0
// Files of one JSON object a line, and what is lost of them: the same for every tool that writes such files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/input_file.h"
#include "base/line_reader.h"
#include "base/result.h"

namespace lockstep::readers::common {

struct LineLosses {
  uint64_t bad_records = 0;  // lines that are no record
  uint64_t too_long = 0;     // lines longer than any record
  bool cut = false;          // the last line is incomplete
};

// Gives each line of up to `longest` bytes to `add`, which says whether it is a record. Only the last line
// can be incomplete; any other that is no record is damaged. Lines may be parsed where they lie
// (LineReader::kPadding).
template <class Add>
Result<void> for_each_json_line(const std::string& path, size_t longest, LineLosses& losses, Add&& add) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  LineReader lines(file, longest);
  while (const auto line = lines.next()) {
    if (line->empty() || add(*line)) continue;
    if (lines.is_open()) {
      losses.cut = true;
    } else {
      ++losses.bad_records;
    }
  }
  losses.too_long = lines.too_long();
  return {};
}

}  // namespace lockstep::readers::common
