// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them, in texts as in tables: three significant digits, as more suggest a precision
// that a measurement does not have. "-" for what is not known.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Any thread; the locale has no say.
std::string format_count(uint64_t count);  // 1,234,567
std::string format_bytes(uint64_t bytes);  // 1.50 MiB
// The same, but to the byte where another number that must differ from it would read alike: "1,048,580 B".
std::string format_bytes_beside(uint64_t bytes, uint64_t other);
// "4096", "64K", "1.5G": bytes, or 1024 of the unit below. Nothing if it is anything else.
std::optional<uint64_t> parse_bytes(std::string_view text);
// "30s", "5m", "1h", "200ms", "15" (seconds), from 1 ms to 30 days, in ns. Nothing if it is anything else.
std::optional<int64_t> parse_duration(std::string_view text);
std::string format_duration(double ns);        // 12.3 us; "-" for a negative value
std::string format_rate(double bytes_per_ns);  // GB/s, two decimals; "-" for 0
std::string format_percent(double fraction);   // 12.5 %; "-" for a negative value
std::string format_time(int64_t unix_ns);      // 2026-01-31 12:00:00 UTC; "-" for 0
std::string format_short(double value);        // 1.23, 12.3, 123
std::string format_decimal(double value, int decimals);
// "1 file", "2,000 files"
std::string plural(uint64_t count, std::string_view noun);

}  // namespace lockstep
