// SPDX-License-Identifier: Apache-2.0
// The part of LogParser that makes lines of what files hold, and knows whose each is.
#include <algorithm>
#include <iterator>
#include <utility>

#include "base/ascii.h"
#include "base/lines/markup.h"
#include "readers/nccl_log/log_parser.h"
#include "readers/nccl_log/paste.h"
#include "readers/nccl_log/symptoms.h"
#include "readers/nccl_log/word_filter.h"
#include "readers/nccl_log/wrap_width.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;
constexpr size_t kSample = 64 << 10;
constexpr size_t kLongestMark = 96;      // of launchers' and frameworks' before a head of NCCL's
constexpr size_t kMarkMost = 16;         // of a launcher's mark: "[rank12345]:"
constexpr uint64_t kSymptomLines = 200;  // within which people say what the matter is

// Words that whoever prints them uses of a failure; in prose and names of files they stand as well.
bool reports_error(std::string_view text) {
  // A heading of a page, and a setting of PyTorch.
  const size_t marks = std::min(text.find_first_not_of('#'), text.size());
  const bool is_heading =
      marks >= 2 && marks <= 6 && text.substr(marks).starts_with(' ') && !text.ends_with('#');
  if (is_heading || text.find("ERROR_HANDLING") != kNo) return false;
  constexpr std::string_view kWords[] = {"Error",   "error:",  "ERROR",  " error ",  "Exception",
                                         "failed",  "Failed",  "FAILED", "imed out", "fatal",
                                         "Aborted", "refused", "FATAL"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return text.find(word) != kNo; });
}

}  // namespace

void LogParser::begin_file(std::string name) {
  model_.files.push_back(std::move(name));
  model_.states.emplace_back();
  splitter_ = LineSplitter();
  line_ = physical_line_ = last_torn_ = 0;
  is_first_piece_ = true;
  utf16_.reset();
  wrap_ = 0;
  is_paste_ = false;
  process_by_name_.clear();
  last_name_.clear();
  last_process_ = kNobody;
  torch_.begin_file();
  program_.begin_file();
}

void LogParser::feed(std::string_view piece) {
  if (piece.empty()) return;
  model_.coverage.bytes += piece.size();
  // The mark stands at the beginning of a file, and nowhere else.
  if (is_first_piece_ && Utf16::is(piece)) utf16_.emplace();
  if (utf16_) piece = utf16_->utf8(piece);
  if (is_first_piece_) look_at(piece.substr(0, kSample));
  is_first_piece_ = false;
  splitter_.feed(piece, [this](std::string_view text) { physical_line(text); });
}

// How a file was kept, from its beginning.
void LogParser::look_at(std::string_view sample) {
  const bool is_page = has_markup(sample);
  if (is_page) splitter_.take_markup();
  wrap_ = wrap_width(sample, is_page);
  is_paste_ = wrap_ == 0 && is_paste(sample);
}

void LogParser::end_file() {
  splitter_.finish([this](std::string_view text) { physical_line(text); });
  if (!joined_.empty()) flush_joined();
  forgive_a_cut_end();
  std::string mark;
  // The exception is lost, but where it was raised may be all that is known of a rank.
  if (const std::string_view frame = program_.cut_off(mark, line_); !frame.empty()) {
    line_text_ = frame;
    Captures captures;
    captures.text[captures.count++] = frame;
    const uint32_t process = process_without_name(rank_of_prefix(mark));
    if (process != kNobody) keep(LineKind::kTracebackCut, process, false, captures);
  }
  lone_words();
  model_.coverage.cut_lines += splitter_.cut_lines();
  model_.coverage.cut_bytes += splitter_.cut_bytes();
  model_.coverage.zero_bytes += splitter_.zero_bytes();
  model_.states.back().has_holes = splitter_.zero_bytes() > 0;
  model_.states.back().is_open = splitter_.is_open();
}

// Where nothing else is understood, an exception without its stack still tells what happened, and a stack
// without its words where a rank failed.
void LogParser::lone_words() {
  FileState& state = model_.states.back();
  if (state.is_understood) return;
  std::string mark;
  uint64_t number = 0;
  LineKind kind = LineKind::kProgramRaised;
  std::string_view words = program_.lone_exception(mark, number);
  if (words.empty()) {
    kind = LineKind::kFrameAlone;
    words = program_.lone_frame(number);
    mark = words;
  }
  if (words.empty()) return;
  state.is_understood = true;
  line_ = number;
  line_text_ = words;
  Captures captures;
  captures.text[captures.count++] = words;
  const uint32_t process = process_without_name(rank_of_prefix(mark));
  if (process != kNobody) keep(kind, process, false, captures);
}

// Of a paste, the last line ends wherever somebody stopped to copy.
void LogParser::forgive_a_cut_end() {
  FileState& state = model_.states.back();
  if (state.torn == 0 || last_torn_ != line_) return;
  --state.torn;
  --model_.coverage.torn;
}

// Whether it is what somebody says of the job. A word for any failure stands back behind one that says which.
bool LogParser::takes_symptom(std::string_view text) {
  FileState& state = model_.states.back();
  const bool is_open = !state.symptom || state.symptom == Symptom::kFailure;
  if (!is_open || line_ > kSymptomLines) return false;
  const auto symptom = symptom_of(text, text.starts_with("# "));
  if (!symptom || symptom == state.symptom) return false;
  state.symptom = symptom;
  state.symptom_at = here();
  return true;
}

// Quoted where nothing better is known of a job.
void LogParser::unknown_text(std::string_view text) {
  FileState& state = model_.states.back();
  if (takes_symptom(text) || !reports_error(text)) return;
  if (state.errors++ < FileState::kErrorsMost) state.first_errors.push_back(here());
}

// Of a file whose lines a terminal broke, a line and what may be the rest of it. Padding up to the edge is
// one blank.
void LogParser::physical_line(std::string_view text) {
  ++physical_line_;
  if (wrap_ == 0) {
    line_ = physical_line_;
    return is_paste_ ? pasted(text) : line(text);
  }
  if (!joined_.empty() && (!may_continue(text) || begin_alike(joined_, text))) flush_joined();
  if (joined_.empty()) line_ = physical_line_;
  // Only a line of the full width can have been broken. The bound holds where all lines have it.
  const bool is_full = text.size() == wrap_ && joined_.size() < LineSplitter::kLineMost;
  const size_t end = text.find_last_not_of(' ');
  const bool is_padded = is_full && end != kNo && end + 2 < text.size();
  joined_ += is_padded ? text.substr(0, end + 2) : text;
  is_joined_damaged_ = is_joined_damaged_ || splitter_.is_damaged();
  if (!is_full) flush_joined();
}

void LogParser::pasted(std::string_view text) {
  do {
    const size_t length = pasted_line(text);
    line(trimmed(text.substr(0, length), " "));
    text.remove_prefix(length);
  } while (!text.empty());
}

void LogParser::flush_joined() {
  const std::string whole = std::exchange(joined_, {});
  line(whole);
  is_joined_damaged_ = false;
}

// The order matters. Damage and cuts come first, as no reading of such a line can be trusted. A head comes
// next, as it tells whose words these are. Then what PyTorch and programs say; last, heads that lost a part.
void LogParser::line(std::string_view text) {
  ++model_.coverage.lines;
  line_text_ = text;
  Head head;
  const bool has_head = find_head(text, head);
  const bool warns = has_head && (head.level == Level::kWarn || head.level == Level::kAbort);
  if (wrap_ == 0 ? splitter_.is_damaged() : is_joined_damaged_) {
    FileState& state = model_.states.back();
    if (state.damaged_lines++ == 0) state.first_damaged = line_;
    // A warning reports trouble whatever became of its end. What else is said may have been something else.
    if (!warns) return;
  }
  if (may_be_cut(text, head, has_head) && !warns) return;
  FileState& state = model_.states.back();
  if (has_head) {
    state.is_understood = true;
    // Of a paste of one line, what stands before the first head.
    if ((head.prefix.starts_with("[rank") || head.prefix.size() > kLongestMark) && may_speak(head.prefix))
      part_of_line(head.prefix);
    line_text_ = text;
    return headed(head);
  }
  // One after the other and not looked at for heads again: a hostile line has thousands of parts.
  for (size_t second = second_mark(text); second != kNo; second = second_mark(text)) {
    const bool is_whole = text[second - 1] == ' ';
    if (is_whole) headless(text.substr(0, second));
    if (!is_whole && second > kMarkMost) ++state.torn;
    text.remove_prefix(second);
  }
  headless(text);
}

// What PyTorch and programs say, and heads that lost a part.
void LogParser::headless(std::string_view text) {
  FileState& state = model_.states.back();
  line_text_ = text;
  const bool follows = program_.follows() || (torch_.follows() && !text.empty());
  if (!follows && !may_speak(text)) {
    takes_symptom(text);
    return;
  }
  // A paste may hold a watchdog's words and NCCL's last error in one line.
  const bool is_torch = torch_.line(text, [this] { return here(); });
  if (is_torch) state.is_understood = true;
  if (is_torch && text.find("Last error: ") == kNo) return;
  if (program_line(text) || is_torch) {
    state.is_understood = true;
    return;
  }
  if (text.find("NCCL") == kNo) {
    if (!beheaded(trimmed(text, " "))) return unknown_text(text);
    state.is_understood = true;
    return;
  }
  Head head;
  Captures captures;
  if (classify(text, captures) == LineKind::kVersion) {
    state.is_understood = true;
    keep(LineKind::kVersion, kNobody, false, captures);
  } else if (find_head(respaced(text), head)) {
    state.is_understood = true;
    headed(head);
  } else if (beheaded(spaced_)) {
    state.is_understood = true;
  } else if (looks_torn(text)) {
    ++model_.coverage.torn;
    ++state.torn;
    last_torn_ = line_;
  } else {
    unknown_text(text);
  }
}

// Where in a line of PyTorch the words of the next rank begin: "... timing out. [rank3]:[E" of a paste, or
// torn.
size_t LogParser::second_mark(std::string_view text) {
  constexpr std::string_view kMark = "[rank";
  if (!text.starts_with(kMark)) return kNo;
  for (size_t at = text.find(kMark, 1); at != kNo; at = text.find(kMark, at + 1)) {
    size_t end = at + kMark.size();
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end > at + kMark.size() && text.substr(end).starts_with("]:[")) return at;
  }
  return kNo;
}

void LogParser::part_of_line(std::string_view text) {
  // line() counts the part as a line again.
  --model_.coverage.lines;
  line(text);
}

bool LogParser::program_line(std::string_view text) {
  using Says = ProgramLine::Says;
  ProgramLine line = program_.line(text, line_);
  if (line.says == Says::kNothing) return false;
  if (line.kind == LineKind::kKnown && line.says == Says::kKind) return true;
  const int32_t rank = rank_of_prefix(line.prefix);
  const uint32_t process = process_without_name(rank);
  if (process == kNobody) return true;
  if (line.says == Says::kWarning) {
    Head head;
    head.level = Level::kWarn;
    head.prefix = line.prefix;
    stated(head, line.text);
    return true;
  }
  if (line.says == Says::kRaised) {
    if (torch_.raised(rank, line.text, [this] { return here(); })) return true;
    line.kind = LineKind::kProgramRaised;
  }
  // Rows with holes keep what these hold. Of the others the words are the only value.
  const bool has_parts = line.kind == LineKind::kBarrierMissed || line.kind == LineKind::kRanksMissing ||
                         line.kind == LineKind::kGpuXid || line.kind == LineKind::kProxyTraced ||
                         line.kind == LineKind::kSharedGpu || line.kind == LineKind::kCudaFailure ||
                         line.kind == LineKind::kRanksAbsent || line.kind == LineKind::kRanksReady ||
                         line.kind == LineKind::kRanksDiffer || line.kind == LineKind::kSwitchXid ||
                         line.kind == LineKind::kTaskListed || line.kind == LineKind::kNcclPackage;
  if (!has_parts) {
    line.captures.text[0] = line.text;
    line.captures.count = 1;
  }
  keep(line.kind, process, line.kind == LineKind::kCudaFailure, line.captures);
  if (!line.last_warning.empty()) {
    Head head;
    head.level = Level::kWarn;
    head.prefix = line.prefix;
    stated(head, line.last_warning);
  }
  return true;
}

// One blank wherever there are several, or tabs, as pasting leaves them. Valid until the next line.
std::string_view LogParser::respaced(std::string_view text) {
  spaced_.clear();
  for (const char c : text) {
    const bool is_blank = c == ' ' || c == '\t';
    if (!is_blank) spaced_ += c;
    if (is_blank && !spaced_.empty() && spaced_.back() != ' ') spaced_ += ' ';
  }
  return spaced_;
}

// A line that names no process, as people cut it out or hide it. What it says of a process' own
// communicators and connections is of nobody; trouble is trouble.
bool LogParser::beheaded(std::string_view text) {
  Head head;
  Captures captures;
  if (!find_weak_head(text, head)) return false;
  const bool is_warning = head.level == Level::kWarn || head.level == Level::kAbort;
  const LineKind kind = classify(head.body, captures);
  if (!is_warning && kind == LineKind::kUnknown) return false;
  ++model_.coverage.headed;
  if (!is_warning && kind < kFirstError && kind != LineKind::kEnvironment) {
    ++model_.coverage.known;
    return true;
  }
  stated(head, head.body);
  return true;
}

// The last line of several, which no newline ends: a value in it may have been longer.
bool LogParser::may_be_cut(std::string_view text, const Head& head, bool has_head) const {
  if (!splitter_.is_open() || line_ == 1) return false;
  if (!has_head) return !text.empty() && is_digit(text.back());
  return !head.body.ends_with("COMPLETE");
}

}  // namespace lockstep::readers::nccl_log
