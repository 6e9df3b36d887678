// SPDX-License-Identifier: Apache-2.0
// Numbers in findings have three significant digits: more suggest a precision that a measurement does not
// have. Limits of the digits are those of the rounded number (9.995 shows as 10.0), so that no value shows a
// digit more than its neighbour.
#include "base/text/wording.h"

#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace lockstep::wording {
namespace {

std::string digits(double value) {
  char text[64];
  snprintf(text, sizeof text, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
  return text;
}

std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

// The largest unit of which there is one at least, and how many.
std::pair<double, size_t> in_units(uint64_t bytes) {
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return {value, unit};
}

}  // namespace

std::string duration(int64_t ns) {
  if (ns < 0) return "-" + duration(ns == INT64_MIN ? INT64_MAX : -ns);
  double value = static_cast<double>(ns);
  if (value < 1e3) return std::to_string(ns) + " ns";
  if (value < 1e6) return digits(value / 1e3) + " us";
  if (value < 1e9) return digits(value / 1e6) + " ms";
  if (value < 600e9) return digits(value / 1e9) + " s";
  return digits(value / 60e9) + " min";
}

std::string bytes(uint64_t bytes) {
  const auto [value, unit] = in_units(bytes);
  return (value == std::floor(value) ? std::to_string(static_cast<uint64_t>(value)) : digits(value)) + " " +
         kUnits[unit];
}

std::string bytes_beside(uint64_t number, uint64_t other) {
  const auto [value, unit] = in_units(number);
  const auto [other_value, other_unit] = in_units(other);
  const bool alike = number != other && unit == other_unit && digits(value) == digits(other_value);
  return alike ? grouped(number) + " B" : bytes(number);
}

std::string rate(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return digits(bytes_per_second / 1e9) + " GB/s";
  return digits(bytes_per_second / 1e6) + " MB/s";
}

std::string percent(double fraction) {
  char text[32];
  snprintf(text, sizeof text, "%.*f %%", fraction < 0.0995 ? 1 : 0, fraction * 100);
  return text;
}

std::string ordinal(uint64_t number) {
  uint64_t last = number % 10, tens = number / 10 % 10;
  const char* ending = tens == 1 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
  return grouped(number) + ending;
}

std::string count(uint64_t number, std::string_view noun) {
  bool sibilant = noun.ends_with("s") || noun.ends_with("x") || noun.ends_with("h");
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : sibilant ? "es" : "s");
}

std::string name(std::string_view text, size_t most) { return shown_name(text, most); }

std::string ranks(const std::vector<int32_t>& ranks, size_t most) {
  std::vector<std::string> pieces;
  size_t listed = 0;
  for (size_t i = 0; i < ranks.size() && pieces.size() < most;) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
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
