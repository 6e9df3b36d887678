// SPDX-License-Identifier: Apache-2.0
// Reads what NCCL's RAS client prints for people. The text groups ranks that are alike and names only those
// that are not, so the rows that it does not print are made of its counts. Mail and tickets quote it: marks
// of quotation before a line are passed over.
#include "readers/ras/text_snapshot.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "model/torch/process_group.h"

namespace lockstep::readers::ras {
namespace {

// Ranks that the text only counts are rows as well: of 16 communicators of 16,384 ranks.
constexpr size_t kMostRows = size_t{1} << 18;
constexpr size_t kMostComms = size_t{1} << 14;
constexpr size_t kLongestText = 256;
constexpr std::string_view kBegin = "Job summary";

// Of a line that may be quoted.
std::string_view words_in(std::string_view line) {
  const size_t begin = std::min(line.find_first_not_of(" \t\r>"), line.size());
  return trimmed(line.substr(begin), " \t\r");
}

// Reads a line from left to right.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}
  bool take(std::string_view words) { return lockstep::take(rest_, words); }
  template <class Number>
  bool take_number(Number& number) {
    return lockstep::take_number(rest_, number);
  }
  std::string_view take_until(std::string_view words) {
    const std::string_view taken = rest_.substr(0, rest_.find(words));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  // No row of a table has more than eight words.
  while (!line.empty() && words.size() < 10) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

int64_t number_of(std::string_view text, int64_t otherwise = -1) {
  int64_t number = otherwise;
  return take_number(text, number) && text.empty() ? number : otherwise;
}

enum class Status : uint8_t { kNone, kNoComm, kInit, kRunning, kFinalize, kAbort };
Status status_of(std::string_view word) {
  constexpr std::pair<std::string_view, Status> kWords[] = {
      {"NOCOMM", Status::kNoComm},   {"UNKNOWN", Status::kNoComm},    {"INIT", Status::kInit},
      {"RUNNING", Status::kRunning}, {"FINALIZE", Status::kFinalize}, {"ABORT", Status::kAbort}};
  for (const auto& [text, status] : kWords) {
    if (word == text) return status;
  }
  return Status::kNone;
}

// ncclResult_t of what the client calls it.
int32_t error_of(std::string_view text) {
  constexpr std::string_view kTexts[] = {"Unhandled CUDA error", "System error",  "Internal error",
                                         "Invalid argument",     "Invalid usage", "Remote process error"};
  const auto at = std::find(std::begin(kTexts), std::end(kTexts), text);
  constexpr int32_t kUnexpected = 99;
  // In the order of ncclResult_t, where 0 is success.
  return at == std::end(kTexts) ? kUnexpected : static_cast<int32_t>(at - std::begin(kTexts)) + 1;
}

// What a line says of one rank, or of several that are counted.
struct Statement {
  enum class Kind : uint8_t { kNothing, kCount, kStatus, kError, kMissing } kind = Kind::kNothing;
  std::string func{};     // kCount
  uint64_t launched = 0;  // kCount
  Status status = Status::kNone;
  int32_t error = kSuccess;
  bool in_init = false;  // kError: of its creation
};

// Ranks of one communicator of which the report says the same.
struct Camp {
  Statement statement;
  uint64_t ranks = 1;
  std::vector<RankPlace> named{};
};

struct CommText {
  Comm comm;
  int32_t group = -1;  // of the table
  std::vector<Camp> camps;
  Status status = Status::kNone;  // of all, from the table
};

class Report {
 public:
  void read(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      read_line(words_in(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  Snapshot take() {
    // A report that people cut still shows something. That it is cut shows where a difference does not name
    // all ranks, an error is not repeated further down, or the last heading is missing.
    for (CommText& of : comms_) {
      if (!is_complete(of)) snapshot_.cut = true;
      if (!of.camps.empty()) groups_[of.group].is_reported = true;
      finish(of);
    }
    for (const auto& [number, group] : groups_) {
      if (group.has_errors && !group.is_reported) snapshot_.cut = true;
    }
    if (!has_last_part_) snapshot_.cut = true;
    snapshot_.is_text = true;
    return std::move(snapshot_);
  }

 private:
  struct Group {
    int32_t size = -1;
    Status status = Status::kNone;
    bool has_errors = false, is_reported = false;  // has_errors: the parts behind the table are about them
  };

  void read_line(std::string_view text) {
    Line line(text);
    if (line.take("NCCL version ")) {
      // "2.28.9 compiled with CUDA 13.0", or "2.28.9+cuda13.0": the number alone.
      snapshot_.nccl_version = line.take_until("+").substr(0, kLongestText);
      snapshot_.nccl_version = snapshot_.nccl_version.substr(0, snapshot_.nccl_version.find(' '));
    } else if (text == "Warnings") {
      has_last_part_ = true;
    } else if (text == "DEAD") {
      in_dead_ = true;
      at_ = nullptr;
    } else if (text.starts_with('#')) {
      begin_comm(line);
    } else if (text.starts_with("Communicator ranks have different ")) {
      begin_difference(line);
    } else if (text.starts_with("Initialization error") || text.starts_with("Asynchronous error")) {
      statement_ = {.kind = Statement::Kind::kError, .in_init = text.starts_with("Init")};
    } else if (line.take("Encountered ")) {
      line.take_number(snapshot_.timeouts);
    } else if (line.take("Process ")) {
      if (in_dead_) read_dead(line);
    } else if (line.take("Rank ")) {
      read_rank(line);
    } else if (line.take("The missing rank") || line.take("The unknown rank")) {
      read_rank_list(line);
    } else {
      read_count_or_table(text);
    }
  }

  // "#0-0 (cf264af53edbe986) MISMATCH"
  void begin_comm(Line& line) {
    int32_t group = -1;
    if (!line.take("#") || !line.take_number(group) || line.take_until("(").size() > 16 || !line.take("("))
      return;
    const std::string hash = "0x" + std::string(line.take_until(")").substr(0, kLongestText));
    in_dead_ = false;
    statement_ = {};
    if (line.rest() == ") INCOMPLETE") statement_.kind = Statement::Kind::kMissing;
    const auto known =
        std::find_if(comms_.begin(), comms_.end(), [&](const CommText& of) { return of.comm.hash == hash; });
    if (known == comms_.end() && comms_.size() == kMostComms) {
      ++snapshot_.left_out;
      at_ = nullptr;
      return;
    }
    if (known != comms_.end()) {
      at_ = &*known;
    } else {
      CommText& of = comms_.emplace_back();
      of.comm.hash = hash;
      of.group = group;
      of.comm.size = groups_[group].size;
      of.status = groups_[group].status;
      at_ = &of;
    }
    if (statement_.kind == Statement::Kind::kMissing)
      at_->camps.push_back({.statement = statement_, .ranks = 0});
  }

  void begin_difference(Line& line) {
    line.take("Communicator ranks have different ");
    statement_ = {};
    if (line.rest() == "status") {
      statement_.kind = Statement::Kind::kStatus;
    } else {
      statement_.kind = Statement::Kind::kCount;
      statement_.func = line.take_until(" operation counts").substr(0, kLongestText);
    }
  }

  // What a camp has in common, from where it differs on: "have launched up to operation 9", "has status
  // ABORT", "reported ..."
  bool read_what(Line& line, Statement& statement) const {
    if (line.take("have ") || line.take("has ")) {
      if (line.take("launched up to operation "))
        return statement.kind == Statement::Kind::kCount && line.take_number(statement.launched);
      if (line.take("not launched any operations")) return statement.kind == Statement::Kind::kCount;
      if (!line.take("status ")) return false;
      statement.status = status_of(words_in(line.take_until(" -- ")));
      return statement.kind == Statement::Kind::kStatus && statement.status != Status::kNone;
    }
    if (!line.take("reported ")) return false;
    statement.error = error_of(words_in(line.take_until(" -- ")));
    return statement.kind == Statement::Kind::kError;
  }

  void read_count_or_table(std::string_view text) {
    Line line(text);
    uint64_t ranks = 0;
    if (at_ != nullptr && line.take_number(ranks) && line.take(" ranks ")) {
      Statement statement = statement_;
      if (read_what(line, statement))
        at_->camps.push_back({.statement = std::move(statement), .ranks = ranks});
      return;
    }
    const std::vector<std::string_view> words = words_of(text);
    // Group, communicators in it, nodes and ranks per node, ranks per communicator and in the group, status,
    // errors.
    if (words.size() == 8 && status_of(words[6]) != Status::kNone) {
      const int64_t group = number_of(words[0]), size = number_of(words[4]);
      if (group < 0 || group > INT32_MAX || size < 0 || size > INT32_MAX || groups_.size() == kMostComms)
        return;
      groups_[static_cast<int32_t>(group)] = {static_cast<int32_t>(size), status_of(words[6]),
                                              words[7] != "OK"};
    } else if (groups_.empty() && (words.size() == 3 || words.size() == 5) &&
               std::all_of(words.begin(), words.end(),
                           [](std::string_view word) { return number_of(word) > 0; })) {
      gpus_ = number_of(words.back());  // the last line of the job's table
    }
  }

  // "Rank 5 has launched up to operation 8 -- GPU 5 (NVML 6) managed by process 105 on node 192.0.2.1"
  void read_rank(Line& line) {
    RankPlace place;
    if (at_ == nullptr || !line.take_number(place.rank) || !line.take(" ")) return;
    Statement statement = statement_;
    const bool stands_alone = !line.rest().starts_with("-- ");
    if (stands_alone && !read_what(line, statement)) return;
    line.take_until("-- ");
    // Cut: its number may be longer. A state is a whole word, and UNKNOWN has no place behind it.
    if (line.rest().empty() && statement.status == Status::kNone) return;
    read_place(line, place);
    if (stands_alone) {
      at_->camps.push_back({.statement = std::move(statement), .ranks = 1});
    } else if (at_->camps.empty() || at_->camps.back().statement.kind != statement_.kind) {
      return;
    }
    Camp& camp = at_->camps.back();
    if (rows_ == kMostRows) {
      ++snapshot_.left_out;
      return;
    }
    ++rows_;
    camp.named.push_back(std::move(place));
  }

  static void read_place(Line& line, RankPlace& place) {
    if (!line.take("-- GPU ") || !line.take_number(place.cuda_device)) return;
    place.nvml_device = place.cuda_device;
    if (line.take(" (NVML ")) line.take_number(place.nvml_device);
    line.take_until("managed by process ");
    if (!line.take("managed by process ") || !line.take_number(place.pid)) return;
    if (line.take(" on node ")) place.host = line.rest().substr(0, kLongestText);
  }

  // 2.24: "The missing ranks: 1,3,4"
  void read_rank_list(Line& line) {
    if (at_ == nullptr) return;
    line.take_until(": ");
    line.take(": ");
    const bool is_missing = statement_.kind == Statement::Kind::kMissing;
    Camp camp{.statement = statement_, .ranks = 0};
    if (!is_missing) camp.statement.status = Status::kNoComm;
    // "2 ranks have status UNKNOWN" counts those that are listed here.
    if (!is_missing && !at_->camps.empty() && at_->camps.back().statement.status == Status::kNoComm &&
        at_->camps.back().named.empty())
      at_->camps.pop_back();
    for (const int32_t rank : model::parse_ranks(line.rest())) {
      if (rows_ == kMostRows) break;
      ++rows_;
      ++camp.ranks;
      camp.named.push_back({.rank = rank, .host = {}});
    }
    at_->camps.push_back(std::move(camp));
  }

  // "Process 105 on node 192.0.2.1 managing GPU 5"
  void read_dead(Line& line) {
    int64_t pid = -1;
    if (!line.take_number(pid) || !line.take(" on node ")) return;
    if (dead_.size() < kMostRows) dead_.emplace(line.take_until(" managing "), pid);
  }

  // Whether all ranks that are there are in a camp, by each difference: else the text ends before the last of
  // them.
  static bool is_complete(const CommText& of) {
    uint64_t gone = 0;
    std::map<std::pair<Statement::Kind, std::string>, uint64_t> ranks;
    for (const Camp& camp : of.camps) {
      const Statement& of_camp = camp.statement;
      if (of_camp.kind == Statement::Kind::kMissing || of_camp.status == Status::kNoComm) {
        gone += std::max<uint64_t>(camp.ranks, camp.named.size());
      } else if (of_camp.kind == Statement::Kind::kCount || of_camp.kind == Statement::Kind::kStatus) {
        ranks[{of_camp.kind, of_camp.func}] += camp.ranks;
      }
    }
    return !of.camps.empty() && std::all_of(ranks.begin(), ranks.end(), [&](const auto& difference) {
      return of.comm.size < 0 || difference.second + gone >= static_cast<uint64_t>(of.comm.size);
    });
  }

  // Ranks that none of the camps of this kind and function names are those of the only one that is merely
  // counted. False: who launched how much stays unknown.
  bool name_the_rest(CommText& of, const std::vector<bool>& missing) {
    bool all_named = true;
    std::map<std::pair<Statement::Kind, std::string>, std::vector<size_t>> differences;
    for (size_t i = 0; i < of.camps.size(); ++i) {
      const Statement& statement = of.camps[i].statement;
      if (statement.kind == Statement::Kind::kCount || statement.kind == Statement::Kind::kStatus)
        differences[{statement.kind, statement.func}].push_back(i);
    }
    for (const auto& [key, camps] : differences) {
      std::vector<size_t> counted;
      std::vector<bool> named = missing;
      for (const size_t i : camps) {
        const Camp& camp = of.camps[i];
        if (camp.named.size() < camp.ranks) counted.push_back(i);
        for (const RankPlace& place : camp.named) {
          if (place.rank >= 0 && place.rank < of.comm.size) named[static_cast<size_t>(place.rank)] = true;
        }
      }
      const auto rest = static_cast<uint64_t>(std::count(named.begin(), named.end(), false));
      if (counted.size() != 1 || !of.camps[counted[0]].named.empty() || rest != of.camps[counted[0]].ranks ||
          rest > kMostRows - rows_) {
        all_named = all_named && (counted.empty() || key.first != Statement::Kind::kCount);
        continue;
      }
      rows_ += rest;
      for (int32_t rank = 0; rank < of.comm.size; ++rank) {
        if (!named[static_cast<size_t>(rank)])
          of.camps[counted[0]].named.push_back({.rank = rank, .host = {}});
      }
    }
    return all_named;
  }

  void finish(CommText& of) {
    if (of.comm.size < 0 || static_cast<size_t>(of.comm.size) > kMostRows) {
      ++snapshot_.left_out;
      return;
    }
    std::vector<bool> missing(static_cast<size_t>(of.comm.size));
    for (const Camp& camp : of.camps) {
      if (camp.statement.kind != Statement::Kind::kMissing && camp.statement.status != Status::kNoComm)
        continue;
      for (const RankPlace& place : camp.named) {
        if (place.rank >= 0 && place.rank < of.comm.size) missing[static_cast<size_t>(place.rank)] = true;
      }
    }
    // Who is behind in one function may be ahead in another.
    if (!name_the_rest(of, missing)) {
      for (const Camp& camp : of.camps) {
        if (camp.statement.kind == Statement::Kind::kCount)
          of.comm.counted.push_back({camp.statement.func, camp.statement.launched, camp.ranks});
      }
      std::erase_if(of.camps,
                    [](const Camp& camp) { return camp.statement.kind == Statement::Kind::kCount; });
    }
    // By rank: several lines may be about one, each of another difference.
    std::map<int32_t, Rank> ranks;
    std::map<int32_t, MissingRank> gone;
    for (const Camp& camp : of.camps) {
      for (const RankPlace& place : camp.named) put(of, camp.statement, place, ranks, gone);
    }
    for (auto& [number, rank] : ranks) {
      // A rank that did not answer is gone, whatever another line says of it.
      if (!gone.contains(number)) of.comm.ranks.push_back(std::move(rank));
    }
    for (auto& [number, rank] : gone) of.comm.missing.push_back(std::move(rank));
    of.comm.is_summary = true;
    snapshot_.comms.push_back(std::move(of.comm));
  }

  void put(const CommText& of, const Statement& statement, const RankPlace& place,
           std::map<int32_t, Rank>& ranks, std::map<int32_t, MissingRank>& gone) {
    if (place.rank < 0 || place.rank >= of.comm.size) {
      ++snapshot_.bad_ranks;
      return;
    }
    const auto with_place = [&](RankPlace& row) {
      if (row.host.empty()) row = place;
      // A communicator of all GPUs of the job numbers its ranks.
      row.global = of.comm.size == gpus_ ? place.rank : -1;
    };
    if (statement.kind == Statement::Kind::kMissing || statement.status == Status::kNoComm) {
      MissingRank& row = gone[place.rank];
      with_place(row);
      row.considered_dead = row.considered_dead || dead_.contains({place.host, place.pid});
      row.unresponsive = statement.kind == Statement::Kind::kMissing;
      return;
    }
    const auto [at, is_new] = ranks.try_emplace(place.rank);
    Rank& row = at->second;
    with_place(row);
    if (is_new && of.status == Status::kInit) row.init_state = kInProgress;
    if (statement.kind == Statement::Kind::kCount)
      row.launched.emplace_back(statement.func, statement.launched);
    if (statement.kind == Statement::Kind::kError)
      (statement.in_init ? row.init_state : row.async_error) = statement.error;
    if (statement.kind != Statement::Kind::kStatus) return;
    row.init_state = statement.status == Status::kInit ? kInProgress : kSuccess;
    row.finalize_called = statement.status == Status::kFinalize;
    row.aborted = statement.status == Status::kAbort;
  }

  Snapshot snapshot_;
  std::map<int32_t, Group> groups_;
  // A deque: at_ points into it.
  std::deque<CommText> comms_;
  CommText* at_ = nullptr;
  Statement statement_;
  bool in_dead_ = false, has_last_part_ = false;    // has_last_part_: every report has the heading
  std::set<std::pair<std::string, int64_t>> dead_;  // host and pid
  int64_t gpus_ = -1;                               // of the job
  size_t rows_ = 0;
};

// The begin of the line in which `at` stands.
size_t line_of(std::string_view text, size_t at) {
  const size_t end = text.rfind('\n', at);
  return end == std::string_view::npos ? 0 : end + 1;
}

size_t find_begin(std::string_view text, size_t from) {
  for (size_t at = text.find(kBegin, from); at != std::string_view::npos; at = text.find(kBegin, at + 1)) {
    // Alone in its line, but for marks of quotation: other lines may mention it.
    if (words_in(text.substr(line_of(text, at), at - line_of(text, at) + kBegin.size())) == kBegin) return at;
  }
  return std::string_view::npos;
}

}  // namespace

bool has_report(std::string_view text) {
  const size_t at = find_begin(text, 0);
  return at != std::string_view::npos &&
         words_in(text.substr(at + kBegin.size()).substr(0, 16)).find("====") != std::string_view::npos;
}

std::optional<Snapshot> next_report(std::string_view& text) {
  const size_t begin = find_begin(text, 0);
  if (begin == std::string_view::npos) {
    text = {};
    return std::nullopt;
  }
  // The releases of the next one stand before it, where it has them.
  size_t end = text.size();
  if (const size_t next = find_begin(text, begin + 1); next != std::string_view::npos) {
    const size_t of_next = text.rfind("NCCL version ", next);
    end = of_next != std::string_view::npos && of_next > begin ? of_next : next;
  }
  Report report;
  // Releases stand before the heading, so a report begins above it.
  const size_t version = text.substr(0, begin).rfind("NCCL version ");
  if (version != std::string_view::npos)
    report.read(text.substr(version, text.find('\n', version) - version));
  report.read(text.substr(begin, end - begin));
  text.remove_prefix(end);
  return report.take();
}

}  // namespace lockstep::readers::ras
