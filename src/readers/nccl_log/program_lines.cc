// SPDX-License-Identifier: Apache-2.0
// Reads what programs print of NCCL's errors: exceptions of PyTorch, JAX and others, and the last error that
// NCCL left. When one rank fails, all others raise something soon after; their exceptions are told apart by
// name and words, because the report is about the first cause. A traceback quotes source text, which may hold
// the very words of an error; such quotes are left out.
#include "readers/nccl_log/program_lines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/ascii.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;
constexpr std::string_view kLastError = "Last error:";
// XLA's words for it, with the warning between quotes.
constexpr std::string_view kLastWarning = "Last NCCL warning(error) log entry (may be unrelated) '";
constexpr std::string_view kTraceback = "Traceback (most recent call last):";

struct Row {
  LineKind kind;
  Pattern pattern;
};
const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = {
#define SAYS(kind, text) {LineKind::k##kind, Pattern(text)},
#define WARNS(text) {LineKind::kUnknownWarning, Pattern(text)},
#include "readers/nccl_log/program_lines.def"
#undef WARNS
#undef SAYS
  };
  return kRows;
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// "ValueError: words", "torch.OutOfMemoryError: words": the name; empty: it is no exception.
std::string_view exception_of(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && is_name_char(text[end])) ++end;
  const std::string_view name = text.substr(0, end);
  const bool is_end = end == text.size() || text[end] == ':';
  const bool is_exception = name.ends_with("Error") || name.ends_with("Exception");
  return is_end && is_exception ? name : std::string_view();
}

// A launcher's mark, or nothing: what stands before a row that is alone in its line.
bool is_mark(std::string_view text) {
  text = trimmed(text);
  return text.empty() || text.back() == ':' || text.back() == ']' || text.back() == ')';
}

// Where a row fits. Source text of a traceback, `f"NCCL error: {text}"`, fits none.
size_t place_of(const Pattern& pattern, std::string_view text, Captures& captures) {
  for (size_t at = text.find(pattern.head()); at != kNo; at = text.find(pattern.head(), at + 1)) {
    const bool is_source = text.substr(at + pattern.head().size()).starts_with('{');
    if (is_source || (pattern.is_whole() && !is_mark(text.substr(0, at)))) continue;
    if (pattern.match(text.substr(at), captures)) return at;
  }
  return kNo;
}

// Many lines that were pasted as one hold more than what is said.
std::string_view words_of(std::string_view text, size_t at) {
  constexpr size_t kBeforeMost = 120;
  return trimmed(at > kBeforeMost ? text.substr(at) : text);
}

// "ncclInvalidUsage: words": of which kind an error is, and not what it is of.
bool is_kind_of_error(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  return name.starts_with("nccl") &&
         (name.ends_with("Error") || name == "ncclInvalidUsage" || name == "ncclInvalidArgument");
}

// Of a line in which XLA says that an NCCL call failed; empty: none.
std::string_view last_warning_of(std::string_view text) {
  const size_t at = text.find(kLastWarning);
  if (at == kNo) return {};
  const std::string_view rest = text.substr(at + kLastWarning.size());
  return trimmed(rest.substr(0, rest.find("'.")));
}

// What one rank raises because another one, or the job, has ended.
bool is_consequence(std::string_view name, std::string_view text) {
  static constexpr std::array<std::string_view, 16> kNames = {
      "DistBackendError",     "DistNetworkError",       "DistStoreError",     "ChildFailedError",
      "RayActorError",        "ActorDiedError",         "RayTaskError",       "EngineDeadError",
      "ConnectionError",      "BrokenPipeError",        "EOFError",           "TimeoutError",
      "ConnectionResetError", "ProcessExitedException", "CalledProcessError", "SignalException"};
  static constexpr std::array<std::string_view, 10> kWords = {
      "NCCL",     "nccl",  "Gloo",          "gloo",  "ollective", "onnection closed",
      "imed out", "store", "process group", "DeepEP"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view word) { return name.ends_with(word); }) ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return text.find(word) != kNo; });
}

// Where an exception's name or C++'s words for one begin, with words behind them; npos: nowhere.
size_t place_of_exception(std::string_view text) {
  constexpr std::string_view kWhat = "what():  ";
  if (const size_t at = text.find(kWhat); at != kNo && at + kWhat.size() < text.size())
    return at + kWhat.size();
  for (size_t colon = text.find(": "); colon != kNo; colon = text.find(": ", colon + 1)) {
    size_t begin = colon;
    while (begin > 0 && is_name_char(text[begin - 1])) --begin;
    const std::string_view name = text.substr(begin, colon - begin);
    const std::string_view last = name.substr(name.rfind('.') + 1);
    const bool is_class = !last.empty() && last != "Error" && last[0] >= 'A' && last[0] <= 'Z';
    if (!is_class || exception_of(text.substr(begin)).empty()) continue;
    // Behind other words it is what a program tells of an exception that it took.
    const std::string_view before = trimmed(text.substr(0, begin));
    const bool is_raised = is_mark(before) && (before.find(' ') == kNo || before.starts_with('('));
    if (is_raised && !trimmed(text.substr(colon + 1)).empty()) return begin;
  }
  return kNo;
}

// Of a stack of Python, or of C++ as PyTorch prints it.
bool is_frame(std::string_view text) {
  const size_t file = text.find("File \"");
  if (file != kNo) {
    const size_t line = text.find("\", line ", file);
    return line != kNo && text.find(", in ", line) != kNo;
  }
  constexpr std::string_view kOwners[] = {"c10d::", "c10::", "torch::", "nccl"};
  return text.find("frame #") != kNo &&
         std::any_of(std::begin(kOwners), std::end(kOwners),
                     [&](std::string_view owner) { return text.find(owner) != kNo; });
}

}  // namespace

ProgramLine ProgramParser::line(std::string_view text, uint64_t number) {
  ++lines_;
  number_ = number;
  ProgramLine line;
  if (last_error(text, line) || traceback(text, line) || absent_rank(text, line) || culprits(text, line) ||
      test_row(text, line))
    return line;
  for (const Row& row : rows()) {
    const size_t at = place_of(row.pattern, text, line.captures);
    if (at == kNo) continue;
    line.prefix = text.substr(0, at);
    if (row.kind == LineKind::kUnknownWarning) {       // of a WARNS row: the catalogue knows what it is
      if (line.prefix.find("NCCL ") != kNo) continue;  // the level may stand there
      line.says = ProgramLine::Says::kWarning;
      line.text = trimmed(text.substr(at));
      return line;
    }
    line.says = ProgramLine::Says::kKind;
    line.kind = row.kind;
    const bool is_hip = row.kind == LineKind::kCudaFailure && row.pattern.head().starts_with("HIP ");
    if (is_hip) line.captures.text[line.captures.count++] = "HIP";
    const bool is_behind_logger = row.kind == LineKind::kWorkerFailed;
    line.text = is_behind_logger ? trimmed(text.substr(at)) : words_of(text, at);
    line.last_warning = last_warning_of(text);
    return line;
  }
  if (!tracebacks_.empty()) return line;
  if (is_frame(text)) {
    lone_frame_ = trimmed(text).substr(0, kFrameMost);
    lone_frame_number_ = number_;
  } else if (lone_exception_.empty()) {
    exception_alone(text);
  }
  return line;
}

bool ProgramParser::last_error(std::string_view text, ProgramLine& line) {
  std::erase_if(last_errors_, [&](const LastError& open) { return lines_ - open.line > kLastErrorLines; });
  if (const size_t at = text.find(kLastError); at != kNo) {
    error_prefix_ = text.substr(0, std::min<size_t>(at, 256));
    const std::string_view rest = trimmed(text.substr(at + kLastError.size()));
    if (rest.empty() && last_errors_.size() < kLastErrorsMost)
      last_errors_.push_back({error_prefix_, lines_});
    line.prefix = error_prefix_;
    line.text = rest;
    line.says = rest.empty() ? ProgramLine::Says::kNothing : ProgramLine::Says::kWarning;
    return true;
  }
  auto open = std::find_if(last_errors_.begin(), last_errors_.end(),
                           [&](const LastError& error) { return text.starts_with(error.prefix); });
  const bool has_mark = open != last_errors_.end();
  // Without its mark only the very next line can be it, and only while one rank alone waits for its words.
  if (!has_mark && last_errors_.size() == 1 && last_errors_[0].line + 1 == lines_)
    open = last_errors_.begin();
  if (open == last_errors_.end()) return false;
  error_prefix_ = std::move(open->prefix);
  last_errors_.erase(open);
  if (has_mark) text.remove_prefix(error_prefix_.size());
  line.text = trimmed(text);
  line.prefix = error_prefix_;
  if (is_kind_of_error(line.text)) return false;
  const bool is_other = line.text.empty() || !exception_of(line.text).empty();
  line.says = is_other ? ProgramLine::Says::kNothing : ProgramLine::Says::kWarning;
  return true;
}

bool ProgramParser::traceback(std::string_view text, ProgramLine& line) {
  if (const size_t at = text.find(kTraceback); at != kNo) {
    std::string_view mark = text.substr(0, std::min<size_t>(at, 256));
    const bool is_reported =
        mark.ends_with("exception: ");  // a program's own words: its next lines have no mark
    if (is_reported) mark = {};
    // By mark: ranks that share a stream raise at the same moment, and their lines mix.
    if (tracebacks_.size() < kTracebacksMost) tracebacks_[std::string(mark)] = lines_;
    return !is_reported;
  }
  for (auto open = tracebacks_.begin(); open != tracebacks_.end();) {
    if (lines_ - open->second > kTracebackLines) {
      open = tracebacks_.erase(open);
      continue;
    }
    std::string_view rest = text;
    if (!rest.starts_with(open->first)) {
      ++open;
      continue;
    }
    rest.remove_prefix(open->first.size());
    const std::string_view name = exception_of(rest);
    if (name.empty()) {
      frame(rest, open->first);
      ++open;
      continue;
    }
    // The exception follows, so its frame is not the last word.
    frame_.clear();
    const bool follows = is_consequence(name, rest);
    line.text = trimmed(rest);
    line.says = follows ? ProgramLine::Says::kNothing : ProgramLine::Says::kRaised;
    line.prefix = text.substr(0, open->first.size());
    tracebacks_.erase(open);
    return !follows;
  }
  return false;
}

void ProgramParser::frame(std::string_view text, const std::string& mark) {
  if (text.starts_with(' ')) {
    frame_line_ = lines_;
    if (!trimmed(text).starts_with("File \"")) return;
    frame_ = trimmed(text).substr(0, kFrameMost);
    frame_mark_ = mark;
    frame_number_ = number_;
    return;
  }
  is_end_cut_ = !text.empty() && text[0] >= 'a' && text[0] <= 'z' &&
                std::all_of(text.begin(), text.end(), is_name_char);
}

void ProgramParser::exception_alone(std::string_view text) {
  const size_t at = place_of_exception(text);
  if (at == kNo) return;
  const std::string_view words = trimmed(text.substr(at));
  if (is_consequence(words.substr(0, words.find(':')), words)) return;
  lone_exception_ = words.substr(0, kFrameMost);
  lone_mark_ = text.substr(0, std::min<size_t>(at, 256));
  lone_exception_number_ = number_;
}

std::string_view ProgramParser::lone_exception(std::string& mark, uint64_t& number) const {
  mark = lone_mark_;
  number = lone_exception_number_;
  return lone_exception_;
}

std::string_view ProgramParser::lone_frame(uint64_t& number) const {
  number = lone_frame_number_;
  return lone_frame_;
}

std::string_view ProgramParser::cut_off(std::string& mark, uint64_t& number) const {
  const bool ends_in_it = frame_line_ == lines_ || (frame_line_ + 1 == lines_ && is_end_cut_);
  if (tracebacks_.empty() || !ends_in_it) return {};
  mark = frame_mark_;
  number = frame_number_;
  return frame_;
}

// "3: [tensor, tensor ...]", with a mark behind ranks for which Horovod gives up.
bool ProgramParser::absent_rank(std::string_view text, ProgramLine& line) {
  constexpr size_t kDigitsMost = 9;
  const std::string_view words = trimmed(text);
  for (const std::string_view heading : {"Missing ranks:", "Stalled ranks:"}) {
    if (!words.ends_with(heading)) continue;
    absent_mark_ = text.substr(0, std::min<size_t>(text.rfind(heading), 256));
    in_absent_ = true;
    return false;
  }
  if (!in_absent_) return false;
  const size_t colon = text.find(": [");
  size_t end = colon == kNo ? 0 : colon;
  if (end > 0 && text[end - 1] == '!') --end;
  size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  in_absent_ = begin < end && end - begin <= kDigitsMost && text.substr(0, begin) == absent_mark_;
  if (!in_absent_) return false;
  line.says = ProgramLine::Says::kKind;
  line.kind = LineKind::kRanksAbsent;
  line.prefix = text.substr(0, begin);
  line.text = words;
  line.captures.text[0] = text.substr(begin, end - begin);
  line.captures.count = 1;
  return true;
}

std::optional<TestRow> test_row_of(std::string_view line) {
  TestRow columns;
  line = trimmed(line);
  for (std::string_view& column : columns) {
    column = line.substr(0, line.find(' '));
    line = trimmed(line.substr(column.size()));
  }
  const auto is_number = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
  };
  if (columns.back().empty() || !line.empty() || !is_number(columns[0]) || !is_number(columns[1]))
    return std::nullopt;
  return columns;
}

// Below their heading: what is wrong is counted out of place and in place.
bool ProgramParser::test_row(std::string_view text, ProgramLine& line) {
  constexpr uint64_t kRows = 256;
  constexpr size_t kType = 2, kOperation = 3, kWrong = 8, kWrongInPlace = 12;
  if (text.find("busbw #wrong") != kNo) test_rows_end_ = lines_ + kRows;
  if (lines_ >= test_rows_end_) return false;
  const auto row = test_row_of(text);
  if (!row || to_int((*row)[0]) <= 0 || to_int((*row)[1]) <= 0) return false;
  const TestRow& columns = *row;
  const int64_t wrong = std::max(to_int(columns[kWrong]), to_int(columns[kWrongInPlace]));
  if (wrong <= 0) return false;
  list_[0] = std::to_string(wrong) + " wrong values in " + std::string(columns[0]) + " bytes, " +
             std::string(columns[kType]) + ' ' + std::string(columns[kOperation]);
  line.text = list_[0];
  line.says = ProgramLine::Says::kKind;
  line.kind = LineKind::kWrongResults;
  return true;
}

// "error msg: Culprit rank 3; Error type: X, words, Culprit rank 7; Error type: X, words" of PyTorch's
// analyser of Flight Recorder dumps, some lines below "world size: 8".
bool ProgramParser::culprits(std::string_view text, ProgramLine& line) {
  constexpr std::string_view kSize = "world size: ", kMark = "Culprit rank ";
  constexpr size_t kRanksMost = 1 << 16, kTextMost = 240;
  static const Pattern kCulprit("Culprit rank {int}; Error type: {rest}"), kNumber("world size: {int}");
  Captures captures;
  if (const size_t at = text.find(kSize); at != kNo && kNumber.match(text.substr(at), captures))
    world_size_ = captures[0].substr(0, 9);
  size_t ranks = 0;
  for (size_t at = text.find(kMark); at != kNo && ranks < kRanksMost; at = text.find(kMark, at + 1)) {
    if (!kCulprit.match(text.substr(at), captures)) continue;
    if (ranks++ == 0) {
      line.prefix = text.substr(0, at);
      line.text = words_of(text, at);
      const std::string_view error = captures[1].substr(0, captures[1].find(", Culprit rank"));
      const size_t comma = std::min(error.find(", "), error.size());
      line.captures.text[3] = trimmed(error.substr(0, comma));
      line.captures.text[4] = trimmed(error.substr(std::min(comma + 2, error.size())));
      list_[0].clear();
    }
    if (list_[0].size() < kTextMost) list_[0] += (ranks == 1 ? "" : ", ") + std::string(captures[0]);
  }
  if (ranks == 0) return false;
  // Captures are views: what is put together has to outlive this call.
  list_[1] = std::to_string(ranks);
  line.captures.text[0] = list_[0];
  line.captures.text[1] = list_[1];
  line.captures.text[2] = world_size_.empty() ? "0" : std::string_view(world_size_);
  line.captures.count = 5;
  line.says = ProgramLine::Says::kKind;
  line.kind = LineKind::kRanksDiffer;
  return true;
}

}  // namespace lockstep::readers::nccl_log
