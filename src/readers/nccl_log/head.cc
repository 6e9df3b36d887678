// SPDX-License-Identifier: Apache-2.0
// Finds "host:pid:tid [device] NCCL LEVEL" in a line, whatever stands before it: launchers, loggers and
// pagers put their own words there, and hosts are often replaced before a log is shared. So the search goes
// backwards from the word NCCL, whose neighbours are the most certain, and never from the begin of the line.
// It is bounded, since a hostile line may hold half heads without end.
#include "readers/nccl_log/head.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;
constexpr size_t kHeadReach = 1024;  // of a head, with the name of a source file and a signature
constexpr size_t kHostMost = 255;

bool is_host_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

constexpr std::pair<std::string_view, Level> kLevels[] = {{"INFO", Level::kInfo},
                                                          {"WARN", Level::kWarn},
                                                          {"ABORT", Level::kAbort},
                                                          {"TRACE", Level::kTrace},
                                                          {"ERROR", Level::kWarn}};

// The level's word at the beginning of `text`, and its length.
size_t level_word(std::string_view text, Level& level) {
  for (const auto& [word, value] : kLevels) {
    if (!text.starts_with(word) || (text.size() > word.size() && text[word.size()] != ' ')) continue;
    level = value;
    return word.size();
  }
  return 0;
}

// The number that ends before `end`; moves `end` to its first digit.
bool number_before(std::string_view line, size_t& end, int64_t& value) {
  size_t begin = end;
  while (begin > 0 && is_digit(line[begin - 1]) && end - begin < 19) --begin;
  if (begin == end) return false;
  value = to_int(line.substr(begin, end - begin));
  end = begin;
  return true;
}

// Where a name begins that somebody put in place of a host's before sharing the log: "<host>", "(redacted)",
// "${HOST}", "***". `end` itself: there is none.
size_t placeholder_before(std::string_view line, size_t end) {
  if (end == 0) return end;
  if (line[end - 1] == '*') {
    const size_t before = line.substr(0, end).find_last_not_of('*');
    return before == kNo ? 0 : before + 1;
  }
  static constexpr std::pair<char, char> kBrackets[] = {{'>', '<'}, {')', '('}, {'}', '{'}, {']', '['}};
  for (const auto& [close, open] : kBrackets) {
    if (line[end - 1] != close) continue;
    const size_t least = end > kHostMost ? end - kHostMost : 0;
    const size_t at = line.substr(least, end - least).rfind(open);
    if (at == kNo) return end;
    const size_t begin = least + at;
    return begin > 0 && open == '{' && line[begin - 1] == '$' ? begin - 1 : begin;
  }
  return end;
}

// "host:pid:tid" that ends before `end`.
bool process_before(std::string_view line, size_t end, Head& head) {
  // From the back, where numbers and colons have a fixed form; the name of a host may hold nearly anything.
  if (!number_before(line, end, head.tid) || end == 0 || line[--end] != ':') return false;
  const size_t pid_end = end;
  if (!number_before(line, end, head.pid) || end == 0 || line[--end] != ':') return false;
  size_t begin = end;
  while (begin > 0 && is_host_char(line[begin - 1]) && end - begin < kHostMost) --begin;
  if (begin == end) begin = placeholder_before(line, end);
  if (begin == end) return false;
  head.prefix = line.substr(0, begin);
  head.host = line.substr(begin, end - begin);
  head.host_pid = line.substr(begin, pid_end - begin);
  return true;
}

// "host:pid:tid [device] " somewhere before `end`, the nearest first; behind it a place in NCCL's sources may
// stand.
bool process_and_device_before(std::string_view line, size_t end, Head& head) {
  constexpr size_t kTries = 8, kDeviceMost = 8;
  const size_t least = end > kHeadReach ? end - kHeadReach : 0;
  size_t open = end;
  for (size_t tries = 0; tries < kTries && open > least; ++tries) {
    // Not before `least`: a line of many half heads would be gone through as often.
    const size_t found = line.substr(least, open - least).rfind(" [");
    if (found == kNo) return false;
    open = least + found;
    const std::string_view device = line.substr(open + 2, kDeviceMost);
    const size_t close = device.find(']');
    if (close == kNo || open + 2 + close >= end) continue;
    const std::string_view number = device.substr(0, close);
    const std::string_view digits = number.substr(number.starts_with('-') ? 1 : 0);
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) continue;
    if (!process_before(line, open, head)) continue;
    head.device = static_cast<int32_t>(to_int(number));
    return true;
  }
  return false;
}

// A head whose "NCCL " is at `at`.
bool head_at(std::string_view line, size_t at, Head& head) {
  const std::string_view behind = line.substr(at + 5);
  if (behind.starts_with("CALL ")) {
    if (at == 0 || !process_before(line, at - 1, head)) return false;
    head.device = -1;
    head.level = Level::kCall;
    head.body = trimmed(behind.substr(5), " ");
    return true;
  }
  const size_t word = level_word(behind, head.level);
  if (word == 0 || !process_and_device_before(line, at, head)) return false;
  head.body = trimmed(behind.substr(word), " ");
  return true;
}

// Length of "include/socket.h:360 "; 0: no place in a source stands there.
size_t source_place(std::string_view text) {
  constexpr size_t kPlaceMost = 64;
  const size_t end = text.substr(0, kPlaceMost).find(' ');
  if (end == kNo) return 0;
  const std::string_view place = text.substr(0, end);
  const size_t colon = place.rfind(':');
  if (colon == kNo || colon + 1 == end || place.find('.') == kNo) return 0;
  return std::all_of(place.begin() + static_cast<std::ptrdiff_t>(colon) + 1, place.end(), is_digit) ? end + 1
                                                                                                    : 0;
}

// Release 2.2 and some forks leave the word NCCL out: "host:pid:tid [device] INFO body".
bool old_head(std::string_view line, Head& head) {
  for (size_t at = line.find("] "); at != kNo; at = line.find("] ", at + 2)) {
    std::string_view behind = line.substr(at + 2);
    behind.remove_prefix(source_place(behind));
    const size_t word = level_word(behind, head.level);
    if (word == 0 || word == behind.size() || head.level == Level::kAbort || head.level == Level::kTrace)
      continue;
    if (!process_and_device_before(line, at + 2, head) || head.host_pid.end() > line.data() + at) continue;
    head.body = trimmed(behind.substr(word), " ");
    return true;
  }
  return false;
}

// "include/socket.h:344 WARN body" of releases whose heads lack the word NCCL: the sources are NCCL's.
bool old_weak_head(std::string_view line, Head& head) {
  constexpr std::string_view kSources[] = {"include/",  "misc/",       "transport/", "graph/",
                                           "init.c",    "bootstrap.c", "enqueue.c",  "transport.c",
                                           "channel.c", "proxy.c",     "group.c"};
  constexpr size_t kMarkReach = 256;  // of a device's number behind a name that somebody put for the host's
  const size_t mark = line.substr(0, kMarkReach).find("] ");
  const size_t begin = mark == kNo ? 0 : mark + 2;
  const std::string_view place = line.substr(begin);
  const bool is_known = std::any_of(std::begin(kSources), std::end(kSources),
                                    [&](std::string_view source) { return place.starts_with(source); });
  const size_t length = is_known ? source_place(place) : 0;
  if (length == 0) return false;
  const std::string_view behind = place.substr(length);
  const size_t word = level_word(behind, head.level);
  if (word == 0 || head.level != Level::kWarn) return false;
  head.prefix = line.substr(0, begin);
  head.body = trimmed(behind.substr(word), " ");
  return !head.body.empty();
}

// "WARN: Function: create Line: 459: body" of the test programs of AWS' plugin.
bool plugin_test_head(std::string_view line, Head& head) {
  static const Pattern kHead("WARN: Function: {word} Line: {int}: NET/{rest}");
  constexpr size_t kMarkReach = 64;  // of a launcher's
  const size_t begin = line.substr(0, kMarkReach).find(kHead.head());
  Captures captures;
  if (begin == kNo || !kHead.match(line.substr(begin), captures)) return false;
  head.prefix = line.substr(0, begin);
  head.level = Level::kWarn;
  head.body = line.substr(line.find(": NET/", begin) + 2);
  return true;
}

bool find_nccl_head(std::string_view line, Head& head) {
  for (size_t at = line.find("NCCL "); at != kNo; at = line.find("NCCL ", at + 5)) {
    // The word stands in sentences, too, so each place is tried.
    if (head_at(line, at, head)) return true;
  }
  return false;
}

}  // namespace

bool find_head(std::string_view line, Head& head) {
  return find_nccl_head(line, head) || old_head(line, head);
}

bool find_weak_head(std::string_view line, Head& head) {
  head.host_pid = head.host = {};
  head.pid = head.tid = 0;
  head.device = -1;
  for (size_t at = line.find("NCCL "); at != kNo; at = line.find("NCCL ", at + 5)) {
    if (at > 0 && line[at - 1] != ' ' && line[at - 1] != ']') continue;
    const size_t word = level_word(line.substr(at + 5), head.level);
    if (word == 0 || head.level == Level::kTrace) continue;
    head.prefix = line.substr(0, at);
    head.body = trimmed(line.substr(at + 5 + word), " ");
    return !head.body.empty();
  }
  return old_weak_head(line, head) || plugin_test_head(line, head);
}

size_t find_torn_head(std::string_view body, Head& next) {
  if (!find_nccl_head(body, next)) return kNo;
  return static_cast<size_t>(next.host.data() - body.data());
}

bool looks_torn(std::string_view line) {
  for (size_t at = line.find("NCCL "); at != kNo; at = line.find("NCCL ", at + 5)) {
    const std::string_view behind = line.substr(at + 5);
    if (behind.empty() || behind.starts_with("IN") || behind.starts_with("WA")) return true;
  }
  return false;
}

int32_t rank_of_prefix(std::string_view prefix) {
  Captures captures;
  static const Pattern kMpi("[{int},{int}]<std"), kTorch("[rank{int}]"), kSrun("{int}: ");
  while (prefix.starts_with(' ')) prefix.remove_prefix(1);
  const size_t mpi = prefix.find('['), torch = prefix.find("[rank");
  std::string_view rank;
  if (torch != kNo && kTorch.match(prefix.substr(torch), captures)) {
    rank = captures[0];
  } else if (mpi != kNo && kMpi.match(prefix.substr(mpi), captures)) {
    rank = captures[1];
  } else if (kSrun.match(prefix, captures)) {
    rank = captures[0];
  }
  return rank.empty() || rank.size() > 8 ? -1 : static_cast<int32_t>(to_int(rank));
}

uint64_t cut_repeat_mark(std::string_view& body) {
  if (!body.ends_with("across cluster]")) return 0;
  const size_t at = body.rfind(" [repeated ");
  Captures captures;
  static const Pattern kMark(" [repeated {int}x across cluster]$");
  if (at == kNo || !kMark.match(body.substr(at), captures)) return 0;
  body = body.substr(0, at);
  return static_cast<uint64_t>(std::max<int64_t>(to_int(captures[0]), 0));
}

}  // namespace lockstep::readers::nccl_log
