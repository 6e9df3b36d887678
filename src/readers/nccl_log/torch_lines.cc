// SPDX-License-Identifier: Apache-2.0
// Reads what PyTorch's watchdog and its communicators print. The words change between releases, so a line is
// found by short words that only it has, and its fields are looked up by name wherever they stand. Lines of
// several threads run into each other in a shared log: the name of an operation is believed only if it has
// the letters that such names have, and a value that nothing ends is taken as cut.
#include "readers/nccl_log/torch_lines.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <utility>

#include "base/ascii.h"
#include "model/names/op_names.h"
#include "readers/nccl_log/fingerprints.h"
#include "readers/nccl_log/head.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;
constexpr size_t kNameMost = 128;
constexpr size_t kBrokenMost = 1024;    // of a line whose rest stands on the next
constexpr size_t kRanksMost = 1 << 22;  // in all lists together

// memmem: find() compares at every place that holds the first character.
size_t find(std::string_view text, std::string_view word) {
  const void* found = ::memmem(text.data(), text.size(), word.data(), word.size());
  return found == nullptr ? kNo : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}
bool has(std::string_view text, std::string_view word) { return find(text, word) != kNo; }

// A watchdog's line that breaks off within its operation.
bool is_half_work(std::string_view text) {
  return has(text, "operation timeout: WorkNCCL(") && !has(text, "ran for ");
}

// Finds `word` and matches `pattern` there.
bool match(std::string_view text, std::string_view word, const Pattern& pattern, Captures& captures) {
  const size_t at = find(text, word);
  return at != kNo && pattern.match(text.substr(at), captures);
}

int64_t count_of(std::string_view text) { return text.empty() || text.size() > 18 ? -1 : to_int(text); }

// "2026-09-07_13:02:58" as seconds; kUnknown: it is none.
int64_t seconds_of(std::string_view text) {
  static const Pattern kTime("{int}-{int}-{int}_{int}:{int}:{int}");
  Captures at;
  if (!kTime.match(text, at)) return TorchLine::kUnknown;
  std::tm time{};
  time.tm_year = to_small(at[0]) - 1900;
  time.tm_mon = to_small(at[1]) - 1;
  time.tm_mday = to_small(at[2]);
  time.tm_hour = to_small(at[3]);
  time.tm_min = to_small(at[4]);
  time.tm_sec = to_small(at[5]);
  // Printed without a zone, so only the order of such times means something.
  return timegm(&time);
}

std::string name_of(std::string_view text) { return printable(text.substr(0, kNameMost)); }

// "[PG ID 2 PG GUID 5(mesh_tp) Rank 1]" of 2.5 and later, "[PG 0 (default_pg) Rank 1]" of 2.4.
void read_group(std::string_view text, TorchLine& line) {
  const size_t open = find(text, "[PG ");
  if (open == kNo) return;
  text.remove_prefix(open + 4);
  const size_t rank = find(text, " Rank ");
  if (rank == kNo) return;
  Captures captures;
  static const Pattern kRank(" Rank {int}]"), kIds("ID {int} PG GUID ");
  if (!kRank.match(text.substr(rank), captures)) return;
  line.group_rank = to_small(captures[0]);
  std::string_view name = text.substr(0, rank);
  if (kIds.match(name, captures)) name.remove_prefix(find(name, "GUID ") + 5);
  const size_t bracket = name.find('(');
  if (bracket != kNo && name.ends_with(')'))
    line.description = name_of(name.substr(bracket + 1, name.size() - bracket - 2));
  line.group = name_of(trimmed(name.substr(0, bracket)));
}

// The rank that wrote the line: its mark comes before what the text says of itself, which can be wrong in
// groups.
int32_t rank_of(std::string_view text, const TorchLine& line) {
  const int32_t marked = rank_of_prefix(text);
  if (marked >= 0) return marked;
  const bool is_world = line.group == "0" || line.description == "default_pg";
  if (is_world && line.group_rank >= 0) return line.group_rank;
  Captures captures;
  static const Pattern kRank("[Rank {int}]"), kComms("[TC][rank={int}]");
  if (match(text, "[Rank ", kRank, captures) || match(text, "[TC][rank=", kComms, captures))
    return to_small(captures[0]);
  return -1;
}

// ALLREDUCE, _ALLGATHER_BASE: what else stands there is of another line, which was written into this one.
bool is_op_name(std::string_view op) {
  return !op.empty() &&
         std::all_of(op.begin(), op.end(), [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
}

// "OpType=ALLREDUCE, TensorShape=[1, 2], NumelIn=2, NumelOut=2, Timeout(ms)=600000" with or without most of
// it.
void read_work(std::string_view text, TorchLine& line) {
  const auto value = [&](std::string_view name, char end) {
    const size_t at = find(text, name);
    if (at == kNo) return std::string_view();
    const std::string_view rest = text.substr(at + name.size());
    const size_t stop = std::min(rest.find(end), rest.find(')'));
    return stop == kNo ? std::string_view() : rest.substr(0, stop);  // what nothing ends may be cut
  };
  line.op = name_of(value("OpType=", ','));
  line.seq = count_of(value("SeqNum=", ','));
  line.in = count_of(value("NumelIn=", ','));
  line.out = count_of(value("NumelOut=", ','));
  line.shape = name_of(value("TensorShape=[", ']'));
}

// "0, 1, 5" up to a bracket that closes.
// A list may name each rank of a large job, and damage may make it longer.
std::vector<int32_t> read_ranks(std::string_view text) {
  std::vector<int32_t> ranks;
  text = text.substr(0, text.find(']'));
  while (!text.empty() && ranks.size() < kRanksMost) {
    const size_t comma = std::min(text.find(','), text.size());
    const int32_t rank = to_small(trimmed(text.substr(0, comma)));
    if (rank >= 0) ranks.push_back(rank);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return ranks;
}

// The list in brackets that ends before `word`.
std::vector<int32_t> ranks_before(std::string_view text, size_t word) {
  const size_t open = text.substr(0, word).rfind('[');
  return open == kNo ? std::vector<int32_t>() : read_ranks(text.substr(open + 1));
}

}  // namespace

void TorchParser::begin_file() {
  end_report();
  report_left_ = 0;
  last_rank_ = -1;
  snapshot_seq_ = -1;
  in_snapshot_ = in_stack_ = false;
  broken_.clear();
}

bool TorchParser::line(std::string_view text, const Here& here) {
  TorchLine line;
  if (in_stack_) {
    if (stack(text, line)) {
      if (line.text.empty()) return true;
      line.rank = last_rank_;
      keep(std::move(line), here);
      return true;
    }
    in_stack_ = false;
  }
  if (announcement(text, here)) return true;
  if (desync(text, line) || launcher(text, line, here)) {
    // Lines of a report have no mark. The rank that spoke last printed them; of an exit it would be the
    // launcher.
    if (line.rank < 0 && line.remark != TorchRemark::kExit) line.rank = last_rank_;
    if (line.remark != TorchRemark::kExit || line.rank >= 0) keep(std::move(line), here);
    return true;
  }
  if (!broken_.empty() && broken(text, here)) return true;
  return sentence(text, here);
}

// A window or a mail breaks lines between words, at no common width.
bool TorchParser::broken(std::string_view text, const Here& here) {
  // Taken whatever comes: a rest stands on the very next line or nowhere.
  const std::string begin = std::exchange(broken_, {});
  const bool is_rest = !has(text, "ProcessGroupNCCL.cpp") && rank_of_prefix(text) < 0;
  if (!is_rest) return false;
  // The parts of an operation are separated by commas: one that ends otherwise was broken within a word.
  const bool is_in_word = is_half_work(begin) && !begin.ends_with(',');
  std::string joined = begin + (is_in_word || begin.ends_with(' ') ? "" : " ") + std::string(text);
  if (joined.size() > kBrokenMost || !is_half_mismatch(joined)) return sentence(joined, here);
  broken_ = std::move(joined);
  return true;
}

bool TorchParser::sentence(std::string_view text, const Here& here) {
  TorchLine line;
  read_group(text, line);
  line.rank = rank_of(text, line);
  if (line.rank >= 0) last_rank_ = line.rank;
  if (has(text, "Stack trace of the failed collective:")) {
    in_stack_ = true;
    return true;
  }
  if (!watchdog(text, line) && !error(text, line) && !read_mismatch(text, line) && !consequence(text, line)) {
    const bool is_begin =
        (has(text, "ProcessGroupNCCL.cpp") && !trimmed(text).ends_with('.')) || begins_mismatch(text);
    if (is_begin && text.size() <= kBrokenMost) broken_ = text;
    // What timed out is not said, or not yet; that something did is.
    if (!has(text, "Watchdog caught collective operation timeout")) return false;
    line.remark = TorchRemark::kSignal;
  }
  if (is_half_work(text) && text.size() <= kBrokenMost) broken_ = text;
  keep(std::move(line), here);
  return true;
}

bool TorchParser::watchdog(std::string_view text, TorchLine& line) const {
  static const Pattern kRan("ran for {int} milliseconds"),
      kProgress("ast enqueued {text}work: {int}, last completed {text}work: {int}"),
      kFailed("work sequence id: {int}"), kFailedAt("watchdog at work: {int}"),
      kFailedOld("Timeout at NCCL work: {int}"), kFrom("collective timeout from {text}rank {int}"),
      kOptions("size: {int}, global rank: {int}, "), kAfter("Operation timed out after {int} ms"),
      kName("[name={text}]");
  Captures captures;
  if (has(text, "Watchdog caught collective operation timeout") || has(text, "timed out in blocking wait")) {
    line.remark = TorchRemark::kTimeout;
    read_work(text, line);
    if (match(text, "ran for ", kRan, captures)) line.milliseconds = count_of(captures[0]);
    return is_op_name(line.op);
  }
  if (match(text, "Operation timed out after ", kAfter, captures)) {
    line.remark = TorchRemark::kTimeout;
    line.milliseconds = count_of(captures[0]);
    if (match(text, "[name=", kName, captures)) line.description = name_of(captures[0]);
    return has(text, "[TC]");
  }
  if (match(text, "ast enqueued ", kProgress, captures)) {
    line.remark = TorchRemark::kProgress;
    line.enqueued = to_int(captures[1]);
    line.completed = to_int(captures[3]);
    if (match(text, "work sequence id: ", kFailed, captures) ||
        match(text, "watchdog at work: ", kFailedAt, captures) ||
        match(text, "Timeout at NCCL work: ", kFailedOld, captures))
      line.seq = count_of(captures[0]);
    if (match(text, "collective timeout from ", kFrom, captures) && captures[0].find_first_not_of(' ') == kNo)
      line.other_rank = to_small(captures[1]);
    if (has(text, "collective timeout from this local rank")) line.other_rank = line.rank;
    return true;
  }
  if (has(text, "Observed flight recorder dump signal from another rank")) {
    line.remark = TorchRemark::kSignal;
    return true;
  }
  if (has(text, "initialization options") && match(text, "size: ", kOptions, captures)) {
    line.remark = TorchRemark::kGroup;
    line.size = to_small(captures[0]);
    line.rank = to_small(captures[1]);
    return true;
  }
  if (has(text, "An unbatched P2P op")) {
    line.remark = TorchRemark::kPointToPoint;
    return true;
  }
  return false;
}

bool TorchParser::error(std::string_view text, TorchLine& line) const {
  static const Pattern kAsync("async error on rank {int}: {rest}");
  const auto rest_of = [&](std::string_view word) {
    return printable(trimmed(text.substr(find(text, word) + word.size())).substr(0, LogModel::kValueMost));
  };
  Captures captures;
  line.remark = TorchRemark::kError;
  if (has(text, "raised the following async exception: ")) {
    read_work(text, line);
    line.text = rest_of("raised the following async exception: ");
    return true;
  }
  if (has(text, "watchdog thread terminated with exception: ")) {
    line.text = rest_of("watchdog thread terminated with exception: ");
    if (!has(line.text, "CUDA error")) line.remark = TorchRemark::kTakenDown;
    return true;
  }
  if (has(text, "nccl hit ") && match(text, "async error on rank ", kAsync, captures)) {
    line.rank = to_small(captures[0]);
    line.text = printable(captures[1].substr(0, LogModel::kValueMost));
    return true;
  }
  return false;
}

bool TorchParser::consequence(std::string_view text, TorchLine& line) const {
  static const Pattern kStuck("watchdog got stuck for {int} seconds"), kRemote("detected from rank: {int}"),
      kAborted("NCCL communicator was aborted on rank {int}.{rest}");
  Captures captures;
  if (match(text, "NCCL communicator was aborted", kAborted, captures)) {
    line.remark = TorchRemark::kTakenDown;
    if (line.rank < 0) line.rank = to_small(captures[0]);
    const std::string_view reason = trimmed(captures[1]);  // else what NCCL met is reported
    return reason.empty() || has(reason, "timed out") || has(reason, "timeout");
  }
  if (has(text, "remote error detected") && match(text, "detected from rank: ", kRemote, captures)) {
    line.remark = TorchRemark::kSignal;
    line.other_rank = to_small(captures[0]);
    return true;
  }
  if (match(text, "watchdog got stuck for ", kStuck, captures)) {
    line.remark = TorchRemark::kWatchdogStuck;
    line.milliseconds = std::min<int64_t>(std::max<int64_t>(count_of(captures[0]), 0), 1'000'000) * 1000;
    return true;
  }
  static constexpr std::pair<std::string_view, TorchRemark> kWords[] = {
      {"Heartbeat monitor timed out!", TorchRemark::kWatchdogStuck},
      {"Could not acquire GIL within ", TorchRemark::kLockHeld},
      {"Some NCCL operations have failed or timed out", TorchRemark::kTakenDown},
      {"taking the entire process down", TorchRemark::kTakenDown},
      {"Terminating the process after attempting to dump debug info", TorchRemark::kTakenDown}};
  for (const auto& [word, remark] : kWords) {
    if (!has(text, word)) continue;
    line.remark = remark;
    return true;
  }
  return false;
}

// Appended to the exception's text, a line each, without marks; with them where the launcher puts them.
bool TorchParser::desync(std::string_view text, TorchLine& line) {
  static const Pattern kHead("] Timeout at collective: {word}, #{int}"),
      kFinished("finished collective #{int}, "), kJoin("but didn't join collective #{int} (count from 1)"),
      kUnfinished("joined but didn't finish collective #{int} (count from 1)"),
      kStates("#{int} {word} ranks:"), kState("] {word} {word}$");
  Captures captures;
  if (has(text, "Snapshot of ranks' latest states")) {
    in_snapshot_ = true;
    line.remark = TorchRemark::kStarted;
    return true;
  }
  if (const size_t at = find(text, "] Timeout at collective: ");
      at != kNo && kHead.match(text.substr(at), captures)) {
    const std::vector<int32_t> self = ranks_before(text, at);
    line.remark = TorchRemark::kTimeout;
    line.rank = self.size() == 1 ? self[0] : -1;
    line.op = name_of(captures[0]);
    line.seq = count_of(captures[1]);
    return true;
  }
  if (const size_t at = find(text, "are the lagging ranks that caused this timeout"); at != kNo) {
    line.remark = TorchRemark::kNeverJoined;
    line.ranks = ranks_before(text, at);
    return true;
  }
  if (const size_t at = find(text, "finished collective #");
      at != kNo && match(text, "but didn't join collective #", kJoin, captures)) {
    line.remark = TorchRemark::kNotJoined;
    line.seq = count_of(captures[0]);
    line.ranks = ranks_before(text, at);
    return true;
  }
  if (const size_t at = find(text, "joined but didn't finish collective #");
      at != kNo && kUnfinished.match(text.substr(at), captures)) {
    line.remark = TorchRemark::kNotFinished;
    line.seq = count_of(captures[0]);
    line.ranks = ranks_before(text, at);
    return true;
  }
  if (!in_snapshot_) return false;
  const size_t number = text.find('#');
  if (number != kNo && kStates.match(text.substr(number), captures)) {
    // A heading: the ranks stand on the lines below it, which do not repeat the number.
    snapshot_seq_ = count_of(captures[0]);
    line.remark = TorchRemark::kStarted;
    return true;
  }
  for (const auto& [word, remark] :
       {std::pair<std::string_view, TorchRemark>("] started ", TorchRemark::kStarted),
        {"] finished ", TorchRemark::kFinished}}) {
    const size_t at = find(text, word);
    if (at == kNo || !kState.match(text.substr(at), captures)) continue;
    line.remark = remark;
    line.op = name_of(captures[1]);
    line.seq = snapshot_seq_;
    line.ranks = ranks_before(text, at);
    return true;
  }
  in_snapshot_ = false;
  return false;
}

// What the report began to say of a process and does not end.
void TorchParser::end_report() {
  if (exit_.rank >= 0 && exit_.is_first_end) {
    exit_.exit_code = TorchLine::kNoCode;
    keep(exit_, [this] { return exit_.first; });
  }
  exit_ = TorchLine();
  is_root_cause_ = false;
}

// torchrun's report of failures: of each process when it ended, its rank and how; last, the one that was seen
// first.
bool TorchParser::report(std::string_view text, TorchLine& line, const Here& here) {
  static const Pattern kRank(": {int} (local_rank: {int})"), kExit("exitcode {text}: {int} (pid: {int})"),
      kTime("time {text}: {rest}");
  Captures captures;
  if (report_left_ > 0) --report_left_;
  if (has(text, "ChildFailedError") || text.ends_with(" FAILED")) report_left_ = kReportLines;
  if (report_left_ > 0 && has(text, "Root Cause (first observed failure)")) {
    is_root_cause_ = true;
    return true;
  }
  if (report_left_ > 0 && match(text, "time ", kTime, captures)) {
    exit_ = TorchLine();
    exit_.ended_s = seconds_of(captures[1]);
    if (exit_.ended_s != TorchLine::kUnknown) return true;
  }
  if (has(text, "(local_rank: ") && match(text, ": ", kRank, captures)) {
    report_left_ = kReportLines;
    exit_.remark = TorchRemark::kExit;
    exit_.rank = to_small(captures[0]);
    exit_.is_first_end = is_root_cause_;
    if (is_root_cause_) exit_.first = here();
    return true;
  }
  if (exit_.rank < 0 || !match(text, "exitcode", kExit, captures)) return false;
  line = std::exchange(exit_, TorchLine());
  line.exit_code = to_small(captures[1].substr(captures[1].starts_with('-') ? 1 : 0));
  if (captures[1].starts_with('-')) line.exit_code = -line.exit_code;
  return true;
}

// Slurm's and Open MPI's words beside it.
bool TorchParser::launcher(std::string_view text, TorchLine& line, const Here& here) {
  static const Pattern kMpi("process rank {int} with PID {text} exited on signal {int}"),
      kSlurm(": task {int}: {rest}");
  Captures captures;
  line.remark = TorchRemark::kExit;
  if (report(text, line, here)) return true;
  if (match(text, "process rank ", kMpi, captures)) {
    line.rank = to_small(captures[0]);
    // A signal is a negative code, as torchrun has it.
    line.exit_code = -to_small(captures[2]);
    return true;
  }
  if (has(text, "srun: error:") && match(text, ": task ", kSlurm, captures)) {
    constexpr std::pair<std::string_view, int32_t> kWords[] = {{"Killed", -9},
                                                               {"Out Of Memory", -9},
                                                               {"Segmentation fault", -11},
                                                               {"Bus error", -7},
                                                               {"Aborted", -6}};
    for (const auto& [word, code] : kWords) {
      if (!captures[1].starts_with(word)) continue;
      line.rank = to_small(captures[0]);
      line.exit_code = code;
      return true;
    }
  }
  return false;
}

// "#0 all_reduce from /path/file.py:3068": the first frame that is not PyTorch's own says where the program
// called.
bool TorchParser::stack(std::string_view text, TorchLine& line) {
  static const Pattern kFrame("#{int} {text} from {rest}");
  Captures captures;
  const size_t at = text.find('#');
  if (at == kNo || !kFrame.match(text.substr(at), captures)) return false;
  // Frames come innermost first: PyTorch's own stand before the program's.
  if (has(captures[2], "/torch/distributed/") || has(captures[2], "/torch/nn/")) return true;
  line.remark = TorchRemark::kCalledAt;
  line.text = name_of(captures[1]) + ", " + printable(captures[2].substr(0, LogModel::kValueMost));
  in_stack_ = false;
  return true;
}

void TorchParser::keep(TorchLine line, const Here& here) {
  // Headings of lists say nothing by themselves.
  const bool is_heading =
      (line.remark == TorchRemark::kStarted || line.remark == TorchRemark::kFinished) && line.ranks.empty();
  if (is_heading) return;
  std::string key(1, static_cast<char>(line.remark));
  for (const int64_t number : {int64_t{line.rank}, line.seq, line.enqueued, line.completed,
                               int64_t{line.other_rank}, int64_t{line.exit_code}})
    key += std::to_string(number) + ' ';
  key += line.group + '\n' + line.op + '\n' + line.text;
  for (const int32_t rank : line.ranks) key += ' ' + std::to_string(rank);
  // The hash alone is kept. Whole keys of so many lines would take more memory than the lines, and no two of
  // 131,072 will share 64 bits.
  const size_t hash = std::hash<std::string>()(key);
  if (seen_.contains(hash)) return;
  if (lines_.size() >= LogModel::kTorchLinesMost || ranks_ + line.ranks.size() > kRanksMost) {
    ++beyond_;
    return;
  }
  seen_.insert(hash);
  ranks_ += line.ranks.size();
  line.func = model::nccl_func(line.op);
  line.first = here();
  lines_.push_back(std::move(line));
}

}  // namespace lockstep::readers::nccl_log
