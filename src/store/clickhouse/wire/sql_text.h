// SPDX-License-Identifier: Apache-2.0
// Names and texts as parts of ClickHouse's SQL. The oldest servers take no parameters, so what comes from
// outside is escaped here, and nowhere else.
#pragma once
#include <string>
#include <string_view>

namespace lockstep::store::clickhouse {

// 'text': quotes, backslashes and control characters escaped; any bytes may be in it.
std::string literal(std::string_view text);
// `name`.
std::string identifier(std::string_view name);

}  // namespace lockstep::store::clickhouse
