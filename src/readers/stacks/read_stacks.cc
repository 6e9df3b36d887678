// SPDX-License-Identifier: Apache-2.0
// Reads stacks as py-spy, faulthandler and gdb print them, alone or between the lines of a log of several
// ranks. Which rank a stack is of comes from the prefix that a launcher puts before each line, so lines of
// different prefixes are never one stack. Only a file that holds one process may get its rank from its name.
#include "readers/stacks/read_stacks.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/input_file.h"
#include "base/lines/line_splitter.h"
#include "base/lines/utf16.h"
#include "base/utf8.h"
#include "model/names/call_place.h"
#include "model/torch/process_group.h"
#include "readers/stacks/native_stack.h"

namespace lockstep::readers::stacks {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;
constexpr size_t kMostStacks = size_t{1} << 17;
constexpr size_t kMostFrames = 256;  // of a thread that are looked at
constexpr size_t kLongestText = 256;
constexpr size_t kLocalsIndent = 8;  // of py-spy's --locals, more than the thread's
constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kFaultEnd = "(most recent call first):";

// "Thread 0x7f12 (most recent call first):", "Current thread 0x7f12 [name] (most recent call first):"
bool is_fault_head(std::string_view line) {
  return line.ends_with(kFaultEnd) &&
         (line.starts_with("Thread 0x") || line.starts_with("Current thread 0x"));
}
// "Thread 1234 (idle): "MainThread"", "Thread 0x7F12 (active+gil)"
bool is_spy_head(std::string_view line) {
  if (!line.starts_with("Thread ")) return false;
  const size_t at = line.find(" (");
  if (at == std::string_view::npos || line.size() < 8 || !is_digit(line[7])) return false;
  const std::string_view state = line.substr(at + 2);
  return state.starts_with("idle)") || state.starts_with("active)") || state.starts_with("idle+gil)") ||
         state.starts_with("active+gil)");
}

// "step (train.py:95)"
std::optional<model::Frame> spy_frame(std::string_view line) {
  const size_t open = line.rfind(" (");
  if (open == std::string_view::npos || !line.ends_with(')')) return std::nullopt;
  const std::string_view inside = line.substr(open + 2, line.size() - open - 3);
  const size_t colon = inside.rfind(':');
  model::Frame frame{.function = line.substr(0, open), .file = inside.substr(0, colon)};
  std::string_view number = colon == std::string_view::npos ? std::string_view() : inside.substr(colon + 1);
  if (!number.empty() && (!take_number(number, frame.line) || !number.empty())) return std::nullopt;
  return frame;
}
// "File "/srv/train.py", line 95 in step"
std::optional<model::Frame> fault_frame(std::string_view line) {
  if (!take(line, "File \"")) return std::nullopt;
  const size_t quote = line.find("\", line ");
  if (quote == std::string_view::npos) return std::nullopt;
  model::Frame frame{.function = {}, .file = line.substr(0, quote)};
  line.remove_prefix(quote + 8);
  if (!take_number(line, frame.line) || !take(line, " in ")) return std::nullopt;
  frame.function = line;
  return frame;
}

// Of Python's decorators: what it wraps says more.
bool is_wrapper(std::string_view function) {
  constexpr std::string_view kNames[] = {
      "wrapper",         "wrapped", "inner", "_fn", "__call__", "_call_impl", "_wrapped_call_impl",
      "decorate_context"};
  return std::find(std::begin(kNames), std::end(kNames), function) != std::end(kNames);
}

class Parser {
 public:
  Parser(const std::string& file, StacksModel& model) : file_(file), model_(model) {}

  void read(std::string_view text) {
    const size_t first = model_.stacks.size();
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    end_process();
    // Of several processes, none is the one that the name means.
    if (model_.stacks.size() != first + 1 || model_.stacks[first].rank >= 0) return;
    model_.stacks[first].rank = model::rank_named_in(std::filesystem::path(file_).filename().string());
  }

 private:
  enum class In : uint8_t { kNothing, kSpy, kFault, kNative };

  void read_line(std::string_view line) {
    const int32_t prefix = take_prefix(line);
    const std::string_view text = trimmed(line, kBlanks);
    if (in_ != In::kNothing && prefix != prefix_) end_process();  // lines of several ranks in one stream
    prefix_ = prefix;
    if (take_rank_head(text) || take_process_head(text)) return;
    if (take_native(text)) return;
    const size_t indent = std::min(line.find_first_not_of(kBlanks), line.size());
    if (is_spy_head(text)) indent_ = indent;
    if (is_spy_head(text))
      return begin_thread(In::kSpy, text.find("\"MainThread\"") != std::string_view::npos);
    // faulthandler prints the oldest thread last: the main one.
    if (is_fault_head(text)) return begin_thread(In::kFault, true);
    if (!in_thread_) return;
    const auto frame = in_ == In::kSpy ? spy_frame(text) : fault_frame(text);
    const bool is_local = in_ == In::kSpy && indent >= indent_ + kLocalsIndent;
    // py-spy's --locals prints values below a frame, and a value may look like one.
    if (frame && !is_local) add(*frame);
    if (text.empty() || (!frame && in_ == In::kFault && text != "...")) in_thread_ = false;
  }

  // "[rank3]: " of PyTorch and torchrun; -1 none.
  static int32_t take_prefix(std::string_view& line) {
    std::string_view rest = line;
    int32_t rank = -1;
    if (!take(rest, "[rank") || !take_number(rest, rank) || !take(rest, "]:")) return -1;
    line = rest;
    return rank;
  }
  // "=== Rank 3: http://host:1234 ==="
  bool take_rank_head(std::string_view text) {
    std::string_view rest = text;
    int32_t rank = -1;
    if (!take(rest, "=== Rank ") || !take_number(rest, rank) || !take(rest, ":")) return false;
    end_process();
    rank_ = rank;
    rest = trimmed(rest, kBlanks);
    if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos)
      rest.remove_prefix(scheme + 3);
    host_ = shown_name(rest.substr(0, rest.find_first_of(":/ =")), kLongestText);
    return true;
  }
  // "Process 1234: python train.py --local-rank 3", alone or as the first line behind a rank's head
  bool take_process_head(std::string_view text) {
    std::string_view rest = text;
    int64_t pid = -1;
    if (!take(rest, "Process ") || !take_number(rest, pid) || !take(rest, ": ")) return false;
    if (in_ != In::kNothing || pid_ >= 0) end_process();
    pid_ = pid;
    return true;
  }

  // Of gdb, threads by number, which no process has twice, or a stack without a head.
  bool take_native(std::string_view text) {
    constexpr size_t kMostThreads = 4096;
    if (const auto head = native_head(text)) {
      if (in_ != In::kNative || threads_.contains(head->thread)) end_process();
      begin_native();
      // Beyond it a repeated number goes unseen, and two processes may become one.
      if (threads_.size() < kMostThreads) threads_.insert(head->thread);
      is_main_ = head->thread == 1;
      if (is_main_) pid_ = head->lwp;
      return true;
    }
    const auto frame = native_frame(text);
    if (!frame || (in_ != In::kNative && !frame->has_address)) return false;
    if (in_ != In::kNative) end_process();
    // Frame 0 again, without a head between: the next thread.
    if (in_ != In::kNative || (frame->number == 0 && !native_.is_empty())) begin_native();
    if (frames_++ < kMostFrames) native_.add(*frame);
    return true;
  }
  void begin_native() {
    end_native();
    in_ = In::kNative;
    in_thread_ = false;
    if (begin_line_ == 0) begin_line_ = line_;
  }
  // Of a process the thread that called NCCL counts, else the main one, else the first.
  void end_native() {
    const int worth = native_.is_in_nccl() ? 3 : is_main_ ? 2 : 1;
    if (!native_.is_empty() && worth > best_worth_) {
      best_ = native_;
      best_worth_ = worth;
    }
    native_ = {};
    is_main_ = false;
    frames_ = 0;
  }

  void begin_thread(In in, bool is_main) {
    if (in_ == In::kNative) end_process();
    if (begin_line_ == 0) begin_line_ = line_;
    in_ = in;
    in_thread_ = true;
    // The main thread counts wherever it stands; until it comes, the first one does.
    takes_ = is_main || frames_ == 0;
    if (takes_) begin_stack();
  }
  void begin_stack() {
    place_ = {};
    called_ = {};
    frames_ = 0;
    has_user_ = is_launcher_ = false;
  }

  void add(const model::Frame& frame) {
    if (!takes_ || frames_ == kMostFrames) return;
    ++frames_;
    for (const std::string_view folder : {"torch/distributed/elastic/agent/", "deepspeed/launcher/"})
      is_launcher_ = is_launcher_ || frame.file.find(folder) != std::string_view::npos;
    const bool is_library = model::is_library(frame.file);
    if (is_library && !has_user_ && !is_wrapper(frame.function)) called_ = frame.function;
    has_user_ = has_user_ || !is_library;
    place_.add(frame, is_library);
  }

  void end_process() {
    const bool is_native = in_ == In::kNative;
    end_native();
    if (in_ != In::kNothing && (!is_native || best_worth_ > 0)) {
      if (model_.stacks.size() == kMostStacks) {
        ++model_.left_out;
      } else {
        model_.stacks.push_back({.file = file_,
                                 .line = begin_line_,
                                 .rank = rank_ >= 0 ? rank_ : prefix_,
                                 .host = host_,
                                 .pid = pid_,
                                 .place = is_native ? shown_name(best_.place(), kLongestText) : place_.text(),
                                 .called = called_text(is_native),
                                 .is_launcher = is_launcher_});
      }
    }
    in_ = In::kNothing;
    in_thread_ = takes_ = false;
    begin_stack();
    threads_.clear();
    best_ = {};
    best_worth_ = 0;
    begin_line_ = 0;
    rank_ = -1;
    pid_ = -1;
    host_.clear();
  }

  std::string called_text(bool is_native) const {
    if (is_native) return shown_name(best_.called(), kLongestText);
    return has_user_ ? shown_name(called_, kLongestText) : std::string();
  }

  const std::string& file_;
  StacksModel& model_;
  uint64_t line_ = 0, begin_line_ = 0;
  In in_ = In::kNothing;
  bool in_thread_ = false, takes_ = false, has_user_ = false, is_launcher_ = false;
  int32_t rank_ = -1, prefix_ = -1;  // by a head; by what stands before each line
  int64_t pid_ = -1;
  std::string host_;
  model::CallPlace place_;
  std::string_view called_;
  size_t frames_ = 0;
  size_t indent_ = 0;          // of the line that began the thread
  NativeStack native_, best_;  // of gdb: the thread that is read, and the one that counts
  int best_worth_ = 0;         // 0: none
  bool is_main_ = false;
  std::set<int32_t> threads_;  // that a head named
};

// A frame with an address: what else begins with '#' and a number may be anything.
bool has_native_stack(std::string_view text) {
  for (size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.size() < 4 || !is_digit(line[1]) || line.find(" 0x", 2) > 5) continue;
    const size_t begin = text.substr(0, at).find_last_of('\n') + 1;
    std::string_view before = trimmed(text.substr(begin, at - begin), kBlanks);
    if (before.starts_with("[rank"))
      before = trimmed(before.substr(std::min(before.find("]:"), before.size() - 2) + 2));
    const auto frame = native_frame(trimmed(line, kBlanks));
    if (before.empty() && frame && frame->has_address) return true;
  }
  return false;
}

bool has_plain_stack(std::string_view text) {
  if (has_native_stack(text)) return true;
  for (size_t at = text.find("hread "); at != std::string_view::npos; at = text.find("hread ", at + 1)) {
    const size_t begin = text.rfind('\n', at), end = text.find('\n', at);
    std::string_view line = text.substr(begin == std::string_view::npos ? 0 : begin + 1);
    line = line.substr(0, end == std::string_view::npos ? line.size() : line.size() - (text.size() - end));
    if (line.starts_with("[rank")) line.remove_prefix(std::min(line.find("]:"), line.size() - 2) + 2);
    line = trimmed(line, kBlanks);
    if (is_fault_head(line) || is_spy_head(line)) return true;
  }
  return false;
}

// "stack_0.txt", "stack_1.txt", one process each: a number alone may be a process, a date or a thread of a
// forum, but numbers of several files that all differ tell these files apart.
void take_ranks_of_numbers(StacksModel& model) {
  std::map<std::string_view, size_t> stacks_of;
  for (const Stack& stack : model.stacks) ++stacks_of[stack.file];
  std::set<int32_t> ranks;
  for (const Stack& stack : model.stacks) {
    const int32_t rank = model::rank_of_file_name(stack.file);
    // One file that names its rank, or holds several processes, makes all numbers doubtful.
    if (stack.rank >= 0 || stacks_of[stack.file] > 1 || rank < 0 || rank == stack.pid) return;
    if (!ranks.insert(rank).second) return;
  }
  if (ranks.size() < 2) return;
  for (Stack& stack : model.stacks) stack.rank = model::rank_of_file_name(stack.file);
}

}  // namespace

bool has_stack(std::string_view text) {
  // The text as it is comes first: taking marks and UTF-16 out of it costs a copy.
  if (has_plain_stack(text)) return true;
  const bool may_be = Utf16::is(text) || text.find("hread ") != std::string_view::npos ||
                      text.find("#1 ") != std::string_view::npos;
  return may_be && has_plain_stack(plain_lines(text));
}

void parse_stacks(std::string_view text, const std::string& file, StacksModel& model) {
  // Stays while the parser reads, which keeps views of it.
  const std::string plain = plain_lines(text);
  Parser(file, model).read(plain);
}

Result<StacksModel> read_stacks(const std::vector<std::string>& paths) {
  StacksModel model;
  std::optional<Error> first_error;
  for (const std::string& path : paths) {
    auto file = InputFile::open(path);
    if (file && file->size() > kMostBytes)
      file = Error{ErrorCode::kUnsupported, "is larger than 1 GiB", path};
    if (!file) {
      model.unreadable_files.push_back(file.error().message());
      if (!first_error) first_error = file.error();
      continue;
    }
    std::string bytes(file->size(), '\0');
    bytes.resize(file->read_at(0, std::as_writable_bytes(std::span(bytes))));
    parse_stacks(bytes, path, model);
  }
  take_ranks_of_numbers(model);
  if (!model.stacks.empty()) return model;
  return first_error ? *first_error
                     : Error{ErrorCode::kInvalidInput, "holds no stack of a thread", paths.front()};
}

}  // namespace lockstep::readers::stacks
