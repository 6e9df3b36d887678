// SPDX-License-Identifier: Apache-2.0
// Finds sentences by what they are not: lines of programs carry times, source files, levels and marks of
// ranks. Words of trouble count only where blanks or marks of a sentence stand around them, so no setting,
// name of a function or path is taken for one.
#include "readers/nccl_log/symptoms.h"

#include <algorithm>
#include <string>

#include "base/ascii.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

struct SymptomWord {
  Symptom symptom;
  std::string_view text;
};
constexpr SymptomWord kSymptomWords[] = {
    {Symptom::kHang, "hang"},
    {Symptom::kHang, "hangs"},
    {Symptom::kHang, "hanging"},
    {Symptom::kHang, "hung"},
    {Symptom::kHang, "stuck"},
    {Symptom::kHang, "freezes"},
    {Symptom::kHang, "deadlock"},
    {Symptom::kHang, "deadlocks"},
    {Symptom::kHang, "stalls"},
    {Symptom::kHang, "stalled"},
    {Symptom::kHang, "no progress"},
    {Symptom::kHang, "waits forever"},
    {Symptom::kHang, "blocks forever"},
    {Symptom::kHang, "never returns"},
    {Symptom::kHang, "never finishes"},
    {Symptom::kCrash, "crash"},
    {Symptom::kCrash, "crashes"},
    {Symptom::kCrash, "crashed"},
    {Symptom::kCrash, "crashing"},
    {Symptom::kCrash, "segfault"},
    {Symptom::kCrash, "segfaults"},
    {Symptom::kCrash, "segmentation fault"},
    {Symptom::kCrash, "segmentation faults"},
    {Symptom::kCrash, "seg fault"},
    {Symptom::kCrash, "seg faults"},
    {Symptom::kCrash, "bus error"},
    {Symptom::kCrash, "core dump"},
    {Symptom::kCrash, "core dumped"},
    {Symptom::kCrash, "sigsegv"},
    {Symptom::kCrash, "sigbus"},
    {Symptom::kCrash, "sigabrt"},
    {Symptom::kCrash, "sigkill"},
    {Symptom::kTimeout, "timeout"},
    {Symptom::kTimeout, "timeouts"},
    {Symptom::kTimeout, "timed out"},
    {Symptom::kTimeout, "times out"},
    {Symptom::kTimeout, "time out"},
    {Symptom::kWrongResults, "wrong result"},
    {Symptom::kWrongResults, "wrong results"},
    {Symptom::kWrongResults, "wrong values"},
    {Symptom::kWrongResults, "incorrect result"},
    {Symptom::kWrongResults, "incorrect results"},
    {Symptom::kWrongResults, "data corruption"},
    {Symptom::kSlow, "very slow"},
    {Symptom::kSlow, "too slow"},
    {Symptom::kSlow, "is slow"},
    {Symptom::kSlow, "slower"},
    {Symptom::kSlow, "slowdown"},
    {Symptom::kSlow, "low bandwidth"},
    {Symptom::kSlow, "poor bandwidth"},
    {Symptom::kSlow, "low throughput"},
    {Symptom::kSlow, "poor performance"},
    {Symptom::kSlow, "bad performance"},
    {Symptom::kSlow, "low performance"},
    {Symptom::kSlow, "performance regression"},
    {Symptom::kSlow, "performance degradation"},
    {Symptom::kSlow, "performance drop"},
};
// Any text may have these: they count in a title alone.
constexpr std::string_view kFailures[] = {"error",     "errors",  "fail",         "fails",       "failed",
                                          "failure",   "failing", "exception",    "cannot",      "can't",
                                          "unable to", "invalid", "doesn't work", "not working", "unhandled"};
constexpr std::string_view kNegations[] = {"no", "not", "never", "without", "longer"};

std::string lowered(std::string_view text) {
  std::string small(text);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small;
}

bool stands_before(char c) { return std::string_view(" \t([\"'`*/").find(c) != kNowhere; }
bool stands_behind(char c) { return std::string_view(" \t)]\"'`*/.,;!?").find(c) != kNowhere; }

// The last word of a text, which loses it.
std::string_view take_last(std::string_view& text) {
  text = trimmed(text, " ");
  const size_t blank = text.rfind(' ');
  const std::string_view last = blank == kNowhere ? text : text.substr(blank + 1);
  text.remove_suffix(last.size());
  return last;
}

// A limit that somebody sets is none that ran out.
bool is_setting(std::string_view word, std::string_view behind) {
  constexpr std::string_view kOfSettings[] = {"not ", "argument", "parameter", "setting", "value", "option",
                                              "to ",  "of ",      "is ",       "for ",    "set "};
  return word == "timeout" && std::any_of(std::begin(kOfSettings), std::end(kOfSettings),
                                          [&](std::string_view of) { return behind.starts_with(of); });
}

bool is_negated(std::string_view before) {
  const std::string_view last = take_last(before);
  if (last == "to" || last == "of") {
    const std::string_view second = take_last(before);
    return second.starts_with("fail") || second == "unable" || second == "instead";
  }
  if (last.starts_with("prevent") || last.starts_with("avoid")) return true;
  return last.ends_with("n't") ||
         std::find(std::begin(kNegations), std::end(kNegations), last) != std::end(kNegations);
}

// Where a word stands in a text of small letters; npos: nowhere, or only that it is not so.
size_t place_of_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != kNowhere; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at > 0 && !stands_before(text[at - 1])) || (end < text.size() && !stands_behind(text[end])))
      continue;
    const std::string_view behind = trimmed(text.substr(end), " ");
    if (!is_negated(text.substr(0, at)) && !is_setting(word, behind)) return at;
  }
  return kNowhere;
}

// A time of day, "12:34:56".
bool holds_time(std::string_view text) {
  for (size_t at = text.find(':'); at != kNowhere && at + 4 <= text.size(); at = text.find(':', at + 1)) {
    const bool is_time = at > 0 && is_digit(text[at - 1]) && is_digit(text[at + 1]) &&
                         is_digit(text[at + 2]) && text[at + 3] == ':';
    if (is_time) return true;
  }
  return false;
}

bool is_of_a_program(std::string_view text) {
  constexpr std::string_view kMarks[] = {".py:",    ".cc:",    ".cpp:", ".cu:",  ".h:",       "::",
                                         "Warning", "WARNING", "INFO",  "DEBUG", "File \"",   "frame #",
                                         "NCCL_",   "export ", "--",    "==",    "can cause", "](",
                                         " = ",     "[W",      "[E",    "[I",    "[rank"};
  return holds_time(text) || std::any_of(std::begin(kMarks), std::end(kMarks),
                                         [&](std::string_view mark) { return text.find(mark) != kNowhere; });
}

}  // namespace

std::optional<Symptom> symptom_of(std::string_view text, bool is_title) {
  constexpr size_t kSentenceMost = 600, kWordsLeast = 3;
  if (text.size() > kSentenceMost || (!is_title && is_of_a_program(text))) return std::nullopt;
  const auto blanks = static_cast<size_t>(std::count(text.begin(), text.end(), ' '));
  if (blanks + 1 < kWordsLeast) return std::nullopt;
  const std::string small = lowered(text);
  std::optional<Symptom> symptom;
  size_t first = kNowhere;
  for (const SymptomWord& word : kSymptomWords) {
    const size_t at = place_of_word(small, word.text);
    if (at >= first) continue;
    first = at;
    symptom = word.symptom;
  }
  const bool is_failure = is_title && !symptom &&
                          std::any_of(std::begin(kFailures), std::end(kFailures), [&](std::string_view word) {
                            return place_of_word(small, word) != kNowhere;
                          });
  if (is_failure) symptom = Symptom::kFailure;
  return symptom;
}

}  // namespace lockstep::readers::nccl_log
