// SPDX-License-Identifier: Apache-2.0
// Which errors pass by themselves is a list: of any other, a user should hear at once and not after a minute.
// The oldest servers answer nearly all of them with status 500, so the code in the text decides.
#include "store/clickhouse/wire/answers.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"

namespace lockstep::store::clickhouse {
namespace {

// By number, as ClickHouse's ErrorCodes.cpp has them.
constexpr int kPassing[] = {
    3,    // unexpected end of file: a proxy cut the block
    32,   // read after the end: likewise
    33,   // cannot read all data: likewise
    74,   // cannot read from a file
    75,   // cannot write to a file
    76,   // cannot open a file
    159,  // timeout
    160,  // too slow
    198,  // DNS
    202,  // too many simultaneous queries
    209,  // socket timeout
    210,  // network
    225,  // no ZooKeeper
    236,  // aborted: the server shuts down
    241,  // memory limit
    242,  // the table is read only for now
    243,  // not enough space
    252,  // too many parts
    271,  // cannot decompress: a proxy cut a compressed block
    279,  // all connections failed
    285,  // too few live replicas
    286,  // unsatisfied quorum
    319,  // unknown status of an insert
    394,  // the query was cancelled
    999,  // Keeper
};
// Read-only user, unknown user or wrong key in the words of several versions, no access to the database.
constexpr int kForbidden[] = {164, 192, 193, 194, 291, 497, 516};

template <size_t N>
bool is_one_of(int code, const int (&codes)[N]) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

// Its first line, as far as a message may hold of it.
std::string first_line(std::string_view body) {
  constexpr size_t kMostBytes = 300;
  const std::string_view line = body.substr(0, body.find('\n'));
  return shown_name(line, kMostBytes);
}

Error stated(ErrorCode code, const HttpAnswer& answer) {
  std::string text = "the store answers " + std::to_string(answer.status);
  if (const std::string line = first_line(answer.body); !line.empty()) text += ": " + line;
  return {code, text, {}};
}

bool is_passing_failure(int failure, bool was_reached) {
  switch (failure) {
    case curl::kUnknownProxy:
    // Before the first answer a name that is not found is most likely mistyped; after it, DNS fails for a
    // moment.
    case curl::kUnknownHost:
      return was_reached;
    case curl::kCannotConnect:
    case curl::kPartial:
    case curl::kTimedOut:
    case curl::kNothing:
    case curl::kSendError:
    case curl::kReceiveError:
      return true;
    default:
      return false;
  }
}

Judgement judge_error(const HttpAnswer& answer, std::optional<int> code) {
  if (code && is_one_of(*code, kForbidden)) return {Meaning::kNo, stated(ErrorCode::kPermission, answer)};
  if (code && is_one_of(*code, kPassing)) return {Meaning::kUnknown, stated(ErrorCode::kIo, answer)};
  // Any other error of the server is about the statement, which stays the same.
  if (code) return {Meaning::kNo, stated(ErrorCode::kUnsupported, answer)};
  if (answer.status == 401 || answer.status == 403)
    return {Meaning::kNo, stated(ErrorCode::kPermission, answer)};
  // Without a code it was most likely a proxy that answered: its timeouts and overloads pass.
  const bool passes = answer.status >= 500 || answer.status == 408 || answer.status == 429;
  return {passes ? Meaning::kUnknown : Meaning::kNo,
          stated(passes ? ErrorCode::kIo : ErrorCode::kUnsupported, answer)};
}

// \t \n \\ \' \0 and the like, as TabSeparated has them.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      plain += text[i];
      continue;
    }
    constexpr std::string_view kLetters = "tnr0bf", kMeant{"\t\n\r\0\b\f", 6};
    const size_t at = kLetters.find(text[++i]);
    plain += at == kLetters.npos ? text[i] : kMeant[at];
  }
  return plain;
}

}  // namespace

std::optional<int> error_code(std::string_view body) {
  constexpr std::string_view kBegin = "Code: ";
  const size_t at = body.find(kBegin);
  // At the begin of a line only: a text of a row may hold these words too.
  if (at == body.npos || (at > 0 && body[at - 1] != '\n')) return std::nullopt;
  const char* const first = body.data() + at + kBegin.size();
  int code = 0;
  const auto [end, error] = std::from_chars(first, body.data() + body.size(), code);
  if (error != std::errc() || end == body.data() + body.size() || (*end != ',' && *end != '.'))
    return std::nullopt;
  return code;
}

Judgement judge(const HttpAnswer& answer, bool wants_nothing, bool was_reached) {
  if (answer.is_cut)
    return {Meaning::kNo,
            {ErrorCode::kUnsupported, "the answer has no end; is this a ClickHouse server?", {}}};
  if (answer.failure != curl::kOk) {
    const Error error{ErrorCode::kIo, shown_name(answer.error, curl::kErrorBytes), {}};
    if (is_passing_failure(answer.failure, was_reached)) return {Meaning::kUnknown, error};
    return {Meaning::kNo, {ErrorCode::kUnsupported, error.text, {}}};
  }
  const std::optional<int> code = error_code(answer.body);
  if (answer.status != 200) return judge_error(answer, code);
  // The status was sent before the statement had failed.
  if (code) return judge_error(answer, code);
  if (wants_nothing && !answer.body.empty()) return {Meaning::kNo, stated(ErrorCode::kUnsupported, answer)};
  return {};
}

std::optional<Rows> parse_rows(std::string_view body, size_t columns) {
  Rows rows;
  while (!body.empty()) {
    const size_t end = body.find('\n');
    // Each row ends its line. One that does not was cut, and its last cell may be half of a number.
    if (end == body.npos) return std::nullopt;
    std::string_view line = body.substr(0, end);
    body.remove_prefix(end + 1);
    std::vector<std::string> row;
    for (bool more = true; more;) {
      const size_t tab = line.find('\t');
      more = tab != line.npos;
      row.push_back(unescaped(line.substr(0, tab)));
      if (more) line.remove_prefix(tab + 1);
      if (row.size() > columns) return std::nullopt;
    }
    if (row.size() != columns) return std::nullopt;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Version> parse_version(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto major = parse_number(text.substr(0, dot));
  std::string_view rest = text.substr(dot + 1);
  const auto minor = parse_number(rest.substr(0, rest.find_first_not_of("0123456789")));
  // Keeps the casts below exact.
  constexpr uint64_t kMost = 9999;
  if (!major || !minor || *major > kMost || *minor > kMost) return std::nullopt;
  return Version{static_cast<unsigned>(*major), static_cast<unsigned>(*minor)};
}

}  // namespace lockstep::store::clickhouse
