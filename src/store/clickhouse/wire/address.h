// SPDX-License-Identifier: Apache-2.0
// Where a store is and who asks: http[s]://[USER[:KEY]@]HOST[:PORT][/DATABASE].
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep::store::clickhouse {

struct Address {
  std::string base;      // "http://host:8123/": what is asked, and all of it that a message may show
  std::string database;  // "fleet" unless the URL names one
  std::string user, key;
};
// The user and the key may be percent-encoded. kUsage for what is no such URL, without repeating it: it may
// hold a key.
Result<Address> parse_address(std::string_view url);

// Bytes that would end a header's line, among others.
bool has_control(std::string_view text);

// For the query part of a URL.
// All but letters, digits and -_.~ become %XX.
std::string percent_encoded(std::string_view text);

}  // namespace lockstep::store::clickhouse
