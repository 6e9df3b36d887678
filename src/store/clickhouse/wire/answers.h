// SPDX-License-Identifier: Apache-2.0
// What a server answers, which need not be ClickHouse: its errors and its tables. Nothing here trusts a byte.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/clickhouse/wire/http_client.h"

namespace lockstep::store::clickhouse {

// What an answer means for who asked.
enum class Meaning : uint8_t {
  kDone,
  kUnknown,  // it may or may not have been done, or could not be done just now: ask again
  kNo,       // asking again will not help
};
struct Judgement {
  Meaning meaning = Meaning::kDone;
  Error error{};  // of all but kDone: one line; kPermission: who asks may not
};
// `wants_nothing`: the answer to a statement that gives no rows; then text is an error that came late.
// `was_reached`: the server has answered before, so a name that is not found is no wrong name.
Judgement judge(const HttpAnswer& answer, bool wants_nothing, bool was_reached);

// "Code: 252, e.displayText() = DB::Exception: Too many parts ..." -> 252.
std::optional<int> error_code(std::string_view body);

// Rows of FORMAT TabSeparated, each with so many columns, unescaped; nothing where it is cut or has another
// shape.
using Rows = std::vector<std::vector<std::string>>;
std::optional<Rows> parse_rows(std::string_view body, size_t columns);
// Decimal digits and nothing else; nothing where the number does not fit 64 bits.
std::optional<uint64_t> parse_number(std::string_view text);

// Of a server: year and number of the release. Patch levels do not matter here.
struct Version {
  unsigned major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};
// "18.16.1", "24.8.4.13-lts".
std::optional<Version> parse_version(std::string_view text);

}  // namespace lockstep::store::clickhouse
