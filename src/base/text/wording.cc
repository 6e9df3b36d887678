// SPDX-License-Identifier: Apache-2.0
#include "base/text/wording.h"

#include <utility>

#include "base/text/units.h"
#include "base/utf8.h"

namespace lockstep::wording {

std::string duration(int64_t ns) {
  // -INT64_MIN does not fit into 64 bits.
  if (ns < 0) return "-" + duration(ns == INT64_MIN ? INT64_MAX : -ns);
  return format_duration(static_cast<double>(ns));
}

std::string bytes(uint64_t bytes) { return format_bytes(bytes); }

std::string bytes_beside(uint64_t bytes, uint64_t other) { return format_bytes_beside(bytes, other); }

std::string rate(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return format_short(bytes_per_second / 1e9) + " GB/s";
  return format_short(bytes_per_second / 1e6) + " MB/s";
}

std::string percent(double fraction) {
  // Up to this limit one decimal rounds to 9.9 at most. Above it a decimal would be a third digit.
  return format_decimal(fraction * 100, fraction < 0.0995 ? 1 : 0) + " %";
}

std::string ordinal(uint64_t number) {
  uint64_t last = number % 10, tens = number / 10 % 10;
  const char* ending = tens == 1 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
  return format_count(number) + ending;
}

std::string count(uint64_t number, std::string_view noun) { return plural(number, noun); }

std::string name(std::string_view text, size_t most) { return shown_name(text, most); }

std::string ranks(const std::vector<int32_t>& ranks, size_t most) {
  std::vector<std::string> pieces;
  size_t listed = 0;
  for (size_t i = 0; i < ranks.size() && pieces.size() < most;) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    // Two neighbours are listed: "ranks 3 and 4", not "ranks 3-4".
    if (end - i == 2) end = i + 1;
    std::string piece = std::to_string(ranks[i]);
    if (end - i > 1) piece += "-" + std::to_string(ranks[end - 1]);
    pieces.push_back(std::move(piece));
    listed = i = end;
  }
  if (listed < ranks.size()) pieces.push_back(count(ranks.size() - listed, "other"));
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < pieces.size(); ++i)
    text += (i == 0 ? "" : i + 1 == pieces.size() ? " and " : ", ") + pieces[i];
  return text;
}

std::string incomplete(const std::vector<std::string>& processes, std::string_view missing) {
  constexpr size_t kMost = 8;
  if (processes.size() == 1) return processes.front() + "'s file is incomplete: " + std::string(missing);
  std::string text = "the files of ";
  for (size_t i = 0; i < std::min(processes.size(), kMost); ++i)
    text += (i == 0 ? "" : i + 1 == processes.size() ? " and " : ", ") + processes[i];
  if (processes.size() > kMost) text += " and " + count(processes.size() - kMost, "other");
  return text + " are incomplete";
}

}  // namespace lockstep::wording
