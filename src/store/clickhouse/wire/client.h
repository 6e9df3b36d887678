// SPDX-License-Identifier: Apache-2.0
// A ClickHouse server over HTTP: statements are repeated, ever more slowly, until it has confirmed them. So
// each may be carried out more than once, and the schema has to bear that.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/clickhouse/wire/answers.h"
#include "store/clickhouse/wire/http_client.h"

namespace lockstep::store::clickhouse {

struct ClientLimits {
  HttpLimits http{};
  std::chrono::milliseconds patience{60'000};  // from a statement's first failure on
  std::chrono::milliseconds first_pause{250}, longest_pause{10'000};
  // Of each statement, as a URL has them; without them where the user may not change settings, as such users
  // may only read.
  std::string settings{};
  bool compresses = false;  // what it inserts, where the server and the user's rights let it
};

// One thread. Errors are kIo when patience ran out, kPermission when the server does not let the user in,
// else kUnsupported; each names the server.
class Client {
 public:
  // Asks for the server's version, and is an error if it gives none.
  static Result<Client> open(const Address& address, const ClientLimits& limits);

  // As it was when the connection was made.
  const Version& version() const { return version_; }
  // Rows with so many columns of a SELECT, which asks for no format itself.
  Result<Rows> select(const std::string& sql, size_t columns);
  // A statement that gives no rows.
  // May be carried out more than once: it must be such that this does no harm.
  Result<void> execute(const std::string& sql);
  // `sql`: INSERT INTO ... FORMAT ... Returns the bytes that were sent.
  Result<uint64_t> insert(const std::string& sql, std::string_view body);

 private:
  Client(HttpClient http, const Address& address, const ClientLimits& limits)
      : http_(std::move(http)), base_(address.base), limits_(limits) {}
  // The body of the first answer that is done. What is done and is no rows for `columns` (if not 0) is not.
  Result<std::string> ask(const std::string& query, std::string_view body, size_t columns);
  Error with_place(Error error) const;

  HttpClient http_;
  // Named in errors; holds neither user nor key.
  std::string base_;
  ClientLimits limits_;
  Version version_;
  // A statement has been confirmed, so this is a ClickHouse server and its name is right.
  bool was_reached_ = false;
  std::optional<int> last_error_;  // the server's number of it, of the last answer
};

}  // namespace lockstep::store::clickhouse
