// SPDX-License-Identifier: Apache-2.0
// What the lines of PyTorch's watchdogs come to: process groups, how far each rank had come in them, and the
// operations that never ended. A time limit says only that somebody did not arrive: the first to arrive gives
// up first. So nobody is named for giving up, and nobody whose count of operations is not known.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_rules {

using readers::nccl_log::TorchLine;
using readers::nccl_log::TorchRemark;

// One rank in one group.
struct GroupRank {
  int64_t enqueued = TorchLine::kUnknown, completed = TorchLine::kUnknown;
  const TorchLine* progress = nullptr;           // that says so; null: not said
  std::map<int64_t, const TorchLine*> timeouts;  // collectives that did not end, by number
  std::map<int64_t, std::string> started;        // what the desync report says that it began
};

// A process group of PyTorch. Lines name it by number, by description or not at all, so a group may be in
// pieces.
struct TorchGroup {
  std::string name;  // as findings of other evidence name it
  int32_t size = -1;
  bool is_world = false;
  bool mixes_counts = false;    // sends and receives are counted with collectives
  bool is_clashing = false;     // two groups have this name
  bool is_of_attempts = false;  // what timed out completed later: the job was started again
  std::map<int32_t, GroupRank> positions;
  std::map<int32_t, int32_t> rank_at;             // rank of the job by rank in the group
  std::map<int32_t, const TorchLine*> transfers;  // sends and receives that did not end
};

enum class StallKind : uint8_t { kNeverJoined, kOtherOp, kStuck, kCannotTell };

// The first operation of a group that did not end.
struct Stall {
  StallKind kind{};
  const TorchGroup* group = nullptr;
  int64_t seq = -1;  // from 1
  std::string func;  // NCCL's name; empty: not said
  std::vector<int32_t> waiting, behind, dead;
  std::vector<int32_t> silent;  // members of which nothing, or no count, is known
  std::map<int32_t, const TorchLine*>
      elsewhere;                              // ranks that wait in a later operation of a group of this name
  std::map<int32_t, const TorchLine*> ahead;  // ranks on which it ended, and that wait in a later one
  bool is_whole = false;                      // all members are known
  bool is_reported = false;                   // a desync report names those behind
  std::map<std::string, std::vector<int32_t>> by_func, by_size;  // of those waiting, who called what
  std::map<std::string, const TorchLine*> proofs;                // of those
  // Longest wait that a line mentions; -1: not said.
  int64_t milliseconds = -1;
  std::vector<const TorchLine*> evidence;
};

// A circle of ranks that each wait where the next one does not come.
struct Circle {
  std::vector<const Stall*> stalls;
  std::set<int32_t> ranks;
};

class TorchJob {
 public:
  // Keeps a reference to the model, and stalls point into it. Empty for logs without lines of PyTorch.
  explicit TorchJob(const readers::nccl_log::LogModel& model);

  bool is_silent() const { return model_.torch.empty(); }
  // At most one a group, in the order of PyTorch's names of them.
  const std::vector<Stall>& stalls() const { return stalls_; }
  const std::vector<Circle>& circles() const { return circles_; }
  // Ranks that ended by themselves or were killed, and not because a time limit had passed.
  const std::map<int32_t, const TorchLine*>& dead() const { return dead_; }
  // Each call looks through all lines.
  std::vector<const TorchLine*> lines(TorchRemark remark) const;
  // Ranks that the lines name, in whatever way, and say nothing themselves.
  std::vector<int32_t> without_lines() const;
  int32_t size() const { return size_; }  // of the job; -1: not said
  // It waits in some stall.
  bool waits(int32_t rank) const { return waiting_.contains(rank); }

 private:
  void read();
  TorchGroup& group_of(const std::string& name, const std::string& description);
  std::string group_beside(size_t row) const;
  std::string only_group_with(const TorchLine& timeout) const;
  void add_timeout(size_t row);
  void add_failed_work();
  void add_desync();
  void add_report(const TorchLine& line, TorchGroup& group);
  void find_dead();
  void forgive_followers();
  void find_stalls();
  Stall stall_of(const TorchGroup& group) const;
  int64_t first_open(const TorchGroup& group) const;
  void add_absent(Stall& stall) const;
  void find_circles();

  const readers::nccl_log::LogModel& model_;
  std::map<std::string, TorchGroup> groups_;
  std::map<int32_t, std::vector<size_t>> rows_of_rank_;
  std::set<int32_t> spoken_, named_;
  std::set<int32_t> gave_up_;                                    // others say that their time was up
  std::map<int64_t, std::set<std::string>> groups_at_;           // that lines name beside a number
  std::map<std::pair<std::string, int64_t>, std::string> func_;  // of an operation, by group and number
  std::map<int32_t, const TorchLine*> dead_;
  std::map<int32_t, TorchGroup*> report_of_;  // by rank: where its first time limit passed
  std::set<int32_t> waiting_;                 // in some stall
  int32_t size_ = -1;
  bool has_timeouts_ = false;
  std::vector<Stall> stalls_;
  std::vector<Circle> circles_;
};

// The signal in an exit code: negative as Python has it, above 128 as a shell has it; 0: none.
inline int64_t signal_of(int64_t exit_code) {
  constexpr int64_t kShell = 128;
  return exit_code > kShell ? exit_code - kShell : std::max<int64_t>(-exit_code, 0);
}
// Who called what, by function if functions differ, else by size; null: nothing differs. Points into `stall`.
const std::map<std::string, std::vector<int32_t>>* differing_calls(const Stall& stall);
// "rank 0: Reduce, ranks 1 and 5: AllGather"
std::string calls_text(const std::map<std::string, std::vector<int32_t>>& camps);
// "operation 8 of default_pg (AllReduce)"
std::string operation_text(const Stall& stall);

}  // namespace lockstep::analysis::log_rules
