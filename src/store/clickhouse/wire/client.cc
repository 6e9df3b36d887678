// SPDX-License-Identifier: Apache-2.0
// Repeats each statement until the server has confirmed it or patience has run out. After a lost answer
// nobody knows whether an insert was carried out, so it is sent again: tables keep one row of a key, and a
// second one does no harm. Pauses double up to a bound, so that many pushers do not keep an overloaded server
// down.
#include "store/clickhouse/wire/client.h"

#include <algorithm>
#include <thread>

#include "base/text/units.h"
#include "store/clickhouse/wire/lz4_frames.h"

namespace lockstep::store::clickhouse {

using Clock = std::chrono::steady_clock;

constexpr int kMayNotSet = 164;  // "Cannot override setting in readonly mode"
// Marks and the states of a few processes are as well sent as they are.
constexpr size_t kWorthCompressing = 2048;
constexpr const char* kFrames = "&decompress=1&http_native_compression_disable_checksumming_on_decompress=1";

namespace {
// A checksum that does not match, where a proxy drops settings; an unknown setting; settings that the user
// may not change.
bool refuses_frames(int code) { return code == 40 || code == 115 || code == kMayNotSet || code == 452; }
}  // namespace

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

Result<uint64_t> Client::insert(const std::string& sql, std::string_view body) {
  const std::string query = "query=" + percent_encoded(sql);
  if (limits_.compresses && body.size() >= kWorthCompressing) {
    const std::string frames = lz4_frames(body);
    const auto done = ask(query + kFrames, frames, 0);
    if (done) return frames.size();
    if (!last_error_ || !refuses_frames(*last_error_)) return done.error();
    // It will refuse the next ones, too.
    limits_.compresses = false;
  }
  const auto done = ask(query, body, 0);
  if (!done) return done.error();
  return body.size();
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
    last_error_ = error_code(answer.body);
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
