// SPDX-License-Identifier: Apache-2.0
#include "base/text/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iterator>
#include <utility>

namespace lockstep {
namespace {

constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

// The largest unit of which there is one at least, and how many.
std::pair<double, size_t> in_units(uint64_t bytes) {
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return {value, unit};
}

}  // namespace

// The limits are those of the rounded number (9.995 becomes 10.0), so that no value shows a digit more than
// its neighbour.
std::string format_short(double value) {
  return format_decimal(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string format_decimal(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string format_count(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string format_bytes(uint64_t bytes) {
  const auto [value, unit] = in_units(bytes);
  return (value == std::floor(value) ? format_decimal(value, 0) : format_short(value)) + " " + kUnits[unit];
}

std::string format_bytes_beside(uint64_t bytes, uint64_t other) {
  const auto [value, unit] = in_units(bytes);
  const auto [other_value, other_unit] = in_units(other);
  const bool alike = bytes != other && unit == other_unit && format_short(value) == format_short(other_value);
  return alike ? format_count(bytes) + " B" : format_bytes(bytes);
}

std::optional<uint64_t> parse_bytes(std::string_view text) {
  // Fixed notation takes no "1e9", but still takes "inf" and "nan": they are refused below.
  constexpr std::string_view kLetters = "KMGT";
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || unit.size() > 1 || !std::isfinite(value) || value < 0) return std::nullopt;
  if (!unit.empty()) {
    const size_t power = kLetters.find(unit[0]);
    if (power == std::string_view::npos) return std::nullopt;
    value = std::ldexp(value, 10 * (static_cast<int>(power) + 1));
  }
  // Converting a double that does not fit is undefined behaviour.
  if (value >= 0x1p63) return std::nullopt;
  return static_cast<uint64_t>(value);
}

std::optional<int64_t> parse_duration(std::string_view text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit == "ms"                   ? 1e6
                       : unit == "s" || unit.empty()  ? 1e9
                       : unit == "m" || unit == "min" ? 60e9
                       : unit == "h"                  ? 3600e9
                                                      : 0;
  const double ns = number * scale;
  // Not `ns < 1e6`: from_chars() takes "nan", which no comparison holds for.
  if (error != std::errc{} || !(ns >= 1e6) || ns > 30 * 24 * 3600e9) return std::nullopt;
  return static_cast<int64_t>(ns);
}

std::string format_duration(double ns) {
  if (ns < 0) return "-";
  if (ns < 1e3) return format_decimal(ns, 0) + " ns";
  if (ns < 1e6) return format_short(ns / 1e3) + " us";
  if (ns < 1e9) return format_short(ns / 1e6) + " ms";
  if (ns < 600e9) return format_short(ns / 1e9) + " s";
  if (ns < 7200e9) return format_short(ns / 60e9) + " min";
  if (ns < 48 * 3600e9) return format_short(ns / 3600e9) + " h";
  return format_short(ns / (24 * 3600e9)) + " days";
}

std::string format_rate(double bytes_per_ns) {
  return bytes_per_ns <= 0 ? "-" : format_decimal(bytes_per_ns, 2);
}

std::string format_percent(double fraction) {
  return fraction < 0 ? "-" : format_decimal(fraction * 100, 1) + " %";
}

std::string format_time(int64_t unix_ns) {
  if (unix_ns == 0) return "-";
  time_t seconds = unix_ns / 1'000'000'000;
  struct tm parts {};
  if (gmtime_r(&seconds, &parts) == nullptr) return "-";
  char text[64];
  return std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0 ? "-" : text;
}

std::string plural(uint64_t count, std::string_view noun) {
  std::string text = format_count(count) + " " + std::string(noun);
  if (count == 1) return text;
  const bool sibilant = noun.ends_with("s") || noun.ends_with("x") || noun.ends_with("h");
  // "copies", but "days".
  const bool in_ies = noun.size() > 1 && noun.ends_with("y") &&
                      std::string_view("aeiou").find(noun[noun.size() - 2]) == std::string_view::npos;
  if (in_ies) text.pop_back();
  return text + (in_ies ? "ies" : sibilant ? "es" : "s");
}

}  // namespace lockstep
