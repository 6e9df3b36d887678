// SPDX-License-Identifier: Apache-2.0
// One SELECT by somebody who is not trusted, on a trace.db that may be anybody's: read only, one statement,
// bounded rows, bytes and time.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace lockstep::store {

struct QueryLimits {
  size_t rows = 100;
  size_t bytes = 8 << 20;  // of all cells
  std::chrono::milliseconds time{10'000};
};

using Cell =
    std::variant<std::monostate, int64_t, double, std::string>;  // a blob is "x'..'" of its first bytes
struct QueryAnswer {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
  bool more = false;  // rows or bytes ran out before the answer did
};

// Any thread, each call with a connection of its own. kUsage: no trace.db, no single SELECT, something that
// is not allowed, or out of time; the text says which. Running out of rows or bytes is `more`.
Result<QueryAnswer> query(const std::string& path, const std::string& sql, const QueryLimits& limits);

}  // namespace lockstep::store
