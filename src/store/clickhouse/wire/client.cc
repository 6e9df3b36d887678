// SPDX-License-Identifier: Apache-2.0
// Repeats each statement until the server has confirmed it or patience has run out. After a lost answer
// nobody knows whether an insert was carried out, so it is sent again: tables keep one row of a key, and a
// second one does no harm. Pauses double up to a bound, so that many pushers do not keep an overloaded server
// down.
#include "store/clickhouse/wire/client.h"

#include <algorithm>
#include <thread>

#include "base/text/units.h"

namespace lockstep::store::clickhouse {

using Clock = std::chrono::steady_clock;

constexpr int kMayNotSet = 164;  // "Cannot override setting in readonly mode"

Result<Client> Client::open(const Address& address, const ClientLimits& limits) {
  LOCKSTEP_ASSIGN(HttpClient http, HttpClient::open(address, limits.http));
  Client client(std::move(http), address, limits);
  LOCKSTEP_ASSIGN(const Rows rows, client.select("SELECT version()", 1));
  const auto version = rows.size() == 1 ? parse_version(rows[0][0]) : std::nullopt;
  if (!version)
    return client.with_place(
        {ErrorCode::kUnsupported, "gives no version; is this the HTTP port of a ClickHouse server?", {}});
  client.version_ = *version;
  return client;
}

Error Client::with_place(Error error) const {
  error.where = base_;
  return error;
}

Result<Rows> Client::select(const std::string& sql, size_t columns) {
  LOCKSTEP_ASSIGN(const std::string body, ask("", sql + " FORMAT TabSeparated", columns));
  // ask() has parsed it already to see that it can: parsing twice is cheap beside the way over the network.
  return *parse_rows(body, columns);
}

Result<void> Client::execute(const std::string& sql) {
  auto done = ask("", sql, 0);
  if (!done) return done.error();
  return {};
}

Result<void> Client::insert(const std::string& sql, std::string_view body) {
  auto done = ask("query=" + percent_encoded(sql), body, 0);
  if (!done) return done.error();
  return {};
}

Result<std::string> Client::ask(const std::string& query, std::string_view body, size_t columns) {
  std::chrono::milliseconds pause = limits_.first_pause;
  std::optional<Clock::time_point> end;
  for (;;) {
    const bool has_both = !query.empty() && !limits_.settings.empty();
    HttpAnswer answer = http_.post(query + (has_both ? "&" : "") + limits_.settings, body);
    // A user who may only read may set nothing, not even `readonly`: the statement goes without settings.
    if (error_code(answer.body) == kMayNotSet && !limits_.settings.empty()) {
      limits_.settings.clear();
      continue;
    }
    Judgement judgement = judge(answer, columns == 0, was_reached_);
    if (judgement.meaning == Meaning::kDone && columns > 0 && !parse_rows(answer.body, columns))
      // A server that has answered with tables before is one: then the answer was cut on its way.
      judgement = {was_reached_ ? Meaning::kUnknown : Meaning::kNo,
                   {was_reached_ ? ErrorCode::kIo : ErrorCode::kUnsupported,
                    "answers with no table; is this the HTTP port of a ClickHouse server?",
                    {}}};
    if (judgement.meaning == Meaning::kDone) {
      was_reached_ = true;
      return std::move(answer.body);
    }
    if (judgement.meaning == Meaning::kNo) return with_place(judgement.error);
    // Patience begins with the first failure: a statement that takes long is no failure.
    if (!end) end = Clock::now() + limits_.patience;
    if (Clock::now() + pause > *end) {
      judgement.error.text +=
          "; gave up after " +
          format_duration(std::chrono::duration<double, std::nano>(limits_.patience).count());
      return with_place(judgement.error);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, limits_.longest_pause);
  }
}

}  // namespace lockstep::store::clickhouse
