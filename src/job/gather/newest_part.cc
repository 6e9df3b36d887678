// SPDX-License-Identifier: Apache-2.0
// What a running job did long ago says nothing about what holds it now. What does is kept: the newest
// operations of each stream with the count of all, the first that have not ended, and the longest gap, which
// tells how long this process may be quiet.
#include "job/gather/newest_part.h"

#include <algorithm>
#include <vector>

#include "job/match/match.h"
#include "model/recording_modes.h"

namespace lockstep::job::gather {
namespace {

using model::JobOps;
using model::Member;
using model::ProcessPart;

// GPUs work through operations in the order of their calls: what holds them is among the first few that have
// not ended.
constexpr uint32_t kUnended = 16;

bool are_all_counted(const ProcessPart& part) {
  const model::JobProcess& process = part.process;
  if (process.lost != 0 || process.row.window != 0 || model::was_off(part.strings[process.row.modes]))
    return false;
  return std::none_of(part.members.begin(), part.members.end(), [&](const Member& member) {
    return match::skipped_number(process.ops, part.signatures, member).has_value();
  });
}

class Keeper {
 public:
  Keeper(ProcessPart& part, uint32_t newest)
      : part_(part), ops_(part.process.ops), newest_(newest), is_counted_(are_all_counted(part)) {}

  void run() {
    for (Member& member : part_.members) {
      keep(member.first, member.ops);
      for (model::Lane& lane : member.lanes) keep(lane.first, lane.ops);
      member.counted = is_counted_;
    }
    each_column([this](auto& column) { take_rows(column); });
    model::JobProcess& process = part_.process;
    process.net_pairs = {};
    process.marks = {};
    process.gpu_steps = {};
    process.exposed = {};
  }

 private:
  void keep(uint32_t& first, uint32_t& count) {
    const uint32_t begin = first, end = first + count;
    const uint32_t window = end - std::min(count, newest_);
    first = static_cast<uint32_t>(rows_.size());
    // Between operations that are gone without a count, none could be distinguished from another.
    if (is_counted_ && window > begin) keep_older(begin, window, end);
    for (uint32_t i = window; i < end; ++i) rows_.push_back(i);
    count = static_cast<uint32_t>(rows_.size()) - first;
  }

  void keep_older(uint32_t begin, uint32_t window, uint32_t end) {
    std::vector<uint32_t> older = unended(begin, window, end);
    int64_t longest = 0;
    uint32_t behind = begin;  // the longest gap
    for (uint32_t i = begin + 1; i <= window; ++i) {
      const int64_t before = ops_.entered_ns(i - 1), entered = ops_.entered_ns(i);
      if (before <= 0 || entered - before <= longest) continue;
      longest = entered - before;
      behind = i;
    }
    // Both sides of it: the gap is the time between two operations.
    if (behind != begin) older.insert(older.end(), {behind - 1, behind});
    std::sort(older.begin(), older.end());
    older.erase(std::unique(older.begin(), older.end()), older.end());
    for (uint32_t i : older) {
      if (i < window) rows_.push_back(i);
    }
  }

  // The newest that is known to have ended, and the next ones.
  std::vector<uint32_t> unended(uint32_t begin, uint32_t window, uint32_t end) const {
    std::vector<uint32_t> rows;
    uint32_t ended = end;
    while (ended > begin && ops_.gpu_end_ns[ended - 1] == 0) --ended;
    if (ended == begin || ended > window) return rows;
    for (uint32_t i = ended - 1; i < std::min(ended + kUnended, window); ++i) rows.push_back(i);
    return rows;
  }

  template <class Visit>
  void each_column(Visit&& visit) {
    visit(ops_.signature);
    visit(ops_.index);
    visit(ops_.seq);
    visit(ops_.called_ns);
    visit(ops_.enqueued_ns);
    visit(ops_.launched_ns);
    visit(ops_.gpu_start_ns);
    visit(ops_.gpu_end_ns);
    visit(ops_.gpu_error_ns);
    visit(ops_.flags);
    visit(ops_.gpu_source);
    visit(ops_.torch_comms_id);
    visit(ops_.place);
  }
  template <class Values>
  void take_rows(Values& values) const {
    if (values.empty()) return;
    // Anew: a part is kept for as long as its process stands still, and must not hold the memory of all rows.
    Values kept;
    kept.reserve(rows_.size());
    for (const uint32_t row : rows_) kept.push_back(values[row]);
    values = std::move(kept);
  }

  ProcessPart& part_;
  JobOps& ops_;
  const uint32_t newest_;
  const bool is_counted_;
  std::vector<uint32_t> rows_;  // that stay, ascending
};

}  // namespace

void keep_newest(ProcessPart& part, uint32_t newest) { Keeper(part, newest).run(); }

}  // namespace lockstep::job::gather
