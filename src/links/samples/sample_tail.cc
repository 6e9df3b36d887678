// SPDX-License-Identifier: Apache-2.0
#include "links/samples/sample_tail.h"

#include <span>
#include <string_view>

#include "base/input_file.h"

namespace lockstep::links {

Result<bool> SampleTail::read() {
  constexpr size_t kMostBytes = size_t{4} << 20;
  for (SampledCounter& counter : log_.counters) counter.samples.clear();
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path_));
  if (file.size() <= offset_) return false;
  std::string bytes(std::min<uint64_t>(file.size() - offset_, kMostBytes), '\0');
  bytes.resize(file.read_at(offset_, std::as_writable_bytes(std::span(bytes))));
  std::string_view text = bytes;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (!has_head_)
      LOCKSTEP_TRY(check_sample_head(text.substr(0, end), path_));
    else
      parse_sample_line(text.substr(0, end), log_);
    has_head_ = true;
    offset_ += end + 1;
    text.remove_prefix(end + 1);
  }
  // A line longer than a reading is no sampler's, and the rest of the file cannot be told from it.
  const bool is_stuck = text.size() == kMostBytes;
  return !is_stuck && file.size() > offset_ + text.size();
}

}  // namespace lockstep::links
