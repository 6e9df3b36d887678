// SPDX-License-Identifier: Apache-2.0
// Compares the members of one group, operation by operation: who arrived after the median member, how long
// each waited for the last, and whose own time explains its lateness. A member becomes a suspect only if it
// is late and has also spent more time of its own than the median member. Lateness alone would blame every
// rank that waited for a late one.
//
// The columns of all members are read in blocks of 64 operations, so that each cache line is loaded once.
// Groups of 10,000 members with 10,000 operations make this loop the longest of a diagnosis.
#include "analysis/straggler/lateness/group_comparer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>

#include "analysis/straggler/median.h"
#include "base/parallel.h"
#include "job/match/match.h"

namespace lockstep::analysis::straggler {
namespace {

using model::Job;
using model::JobOps;
using model::kNoRow;
using model::Member;

constexpr uint32_t kBlock = 64;  // operations that are compared together: whole cache lines of every column
constexpr size_t kPadding = 8;   // rows of a power of two would share the same few lines of the cache
constexpr uint32_t kLeastPiece = 16 * kBlock;
constexpr size_t kPiecesPerThread = 4;

// By signature: the least time from the last arrival of the members to the end.
using LeastMoving = std::map<uint32_t, int64_t>;
void keep_least(LeastMoving& least, uint32_t signature, int64_t moving) {
  const auto [at, added] = least.try_emplace(signature, moving);
  if (!added) at->second = std::min(at->second, moving);
}

struct Group {
  const Job& job;
  const std::vector<ExclusiveTimes>& times;
  std::vector<OpFinder> members;
  bool all;                        // of the communicator: the last of them is the last of all
  std::vector<uint32_t> by_stage;  // of the members that have segments; those of one stage lie together
  uint32_t from = 0, until = 0;    // indexes that each member has reached and, but for gaps, still has
};

// Compares consecutive operations.
class Piece {
 public:
  explicit Piece(const Group& group)
      : group_(group),
        job_(group.job),
        size_(group.members.size()),
        stride_(size_ + kPadding),
        ops_(size_ * kBlock),
        arrivals_(stride_ * kBlock),
        owns_(stride_ * kBlock) {}

  void learn_moving(uint32_t from, uint32_t until, LeastMoving& least) {
    each_block(from, until, [&](uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        const Row& row = rows_[i];
        if (!row.complete || row.end == 0) continue;
        keep_least(least, row.signature, std::max<int64_t>(row.end - row.last, 0));
      }
    });
  }

  // Writes to `past` what belongs to these operations alone.
  void compare(uint32_t from, uint32_t until, const LeastMoving& least, std::vector<MemberPast>& past) {
    result_.members.resize(size_);
    if (from > group_.from) {
      load(from - 1, 1);
      before_ = rows_[0].complete ? last_of_all(rows_[0], least) : 0;
    }
    each_block(from, until, [&](uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) judge(i, least);
      for (size_t m = 0; m < size_; ++m) compare_member(m, count, past[m]);
      for (uint32_t i = 0; i < count; ++i) {
        if (rows_[i].own_of_late > 0 && !rows_[i].first_use) suspect(i);
      }
    });
  }

  const GroupLateness& result() const { return result_; }
  const std::vector<Suspicion>& suspicions() const { return suspicions_; }

 private:
  // One operation.
  struct Row {
    bool complete = true;  // arrivals of all members that compare
    bool timed = false;    // they are the GPUs'
    uint32_t signature = 0;
    int64_t end = 0;  // 0 unknown
    int64_t last = 0;
    int64_t usual = 0;   // the median arrival
    int64_t before = 0;  // the last arrival at the operation before; 0 unknown
    bool uneven = false;
    // Of those that are uneven:
    bool first_use = false;  // by some member
    float own_of_late = 0;   // the most own time of a member that is late
  };

  template <class Use>
  void each_block(uint32_t from, uint32_t until, Use use) {
    for (uint32_t index = from; index < until;) {
      const uint32_t count = std::min(kBlock, until - index);
      load(index, count);
      use(count);
      index += count;
    }
  }

  const ExclusiveTimes& own_of(size_t m) const { return group_.times[group_.members[m].member().process]; }
  const JobOps& ops_of(size_t m) const { return job_.ops(group_.members[m].member()); }
  uint32_t op_of(size_t m, uint32_t i) const { return ops_[m * kBlock + i]; }
  int64_t* arrivals(uint32_t i) { return &arrivals_[i * stride_]; }
  static float own_ns_of(const ExclusiveTimes& own, uint32_t op, bool timed) {
    return own.host_own[op] + own.gpu_own[op] +
           (timed && !own.least_segments.empty() ? own.least_segments[op] : 0);
  }

  void find(size_t m, uint32_t first, uint32_t count) {
    const OpFinder& finder = group_.members[m];
    uint32_t* found = &ops_[m * kBlock];
    if (finder.gapless()) {
      const uint32_t op = *finder.at(first);
      for (uint32_t i = 0; i < count; ++i) found[i] = op + i;
      return;
    }
    std::fill_n(found, count, kNoRow);
    const Member& member = finder.member();
    const Column<uint32_t>& index = ops_of(m).index;
    const auto begin = index.begin() + member.first, end = begin + member.ops;
    for (auto at = std::lower_bound(begin, end, first); at < end && *at < first + count; ++at)
      found[*at - first] = static_cast<uint32_t>(at - index.begin());
  }

  // Arrivals on the host and on the GPU do not compare.
  void load(uint32_t first, uint32_t count) {
    std::fill_n(rows_, count, Row{});
    for (size_t m = 0; m < size_; ++m) {
      find(m, first, count);
      const ExclusiveTimes& own = own_of(m);
      const JobOps& ops = ops_of(m);
      for (uint32_t i = 0; i < count; ++i) {
        Row& row = rows_[i];
        const uint32_t op = op_of(m, i);
        if (op == kNoRow) {
          row.complete = false;
          continue;
        }
        const int64_t arrival = own.arrival[op];
        const bool timed = ops.is_placed(op);
        if (m == 0) {
          row.timed = timed;
          row.signature = ops.signature[op];
          row.end = end_of(ops, own, op);
        }
        if (arrival == 0 || timed != row.timed) row.complete = false;
        row.last = std::max(row.last, arrival);
        arrivals(i)[m] = arrival;
      }
    }
  }

  // What ends later than any operation like it after the members' last arrival had a later one that is not
  // seen.
  int64_t last_of_all(const Row& row, const LeastMoving& least) const {
    if (group_.all || row.end == 0) return row.last;
    return std::max(row.last, row.end - least.at(row.signature));
  }

  void judge(uint32_t i, const LeastMoving& least) {
    Row& row = rows_[i];
    if (!row.complete) {
      before_ = 0;
      return;
    }
    ++result_.compared;
    result_.timed += row.timed;
    row.last = last_of_all(row, least);
    row.usual = lower_median(std::span(arrivals(i), size_));
    row.before = before_;
    row.uneven = static_cast<float>(row.last - row.usual) > kJitterNs;
    before_ = row.last;
    result_.first_ns = std::min(result_.first_ns, row.usual);
    result_.last_ns = std::max(result_.last_ns, row.last);
  }

  void compare_member(size_t m, uint32_t count, MemberPast& past) {
    const ExclusiveTimes& own = own_of(m);
    const uint32_t begin = group_.members[m].member().first;
    Waits& waits = result_.members[m];
    for (uint32_t i = 0; i < count; ++i) {
      Row& row = rows_[i];
      if (!row.complete) continue;
      const uint32_t op = op_of(m, i);
      const int64_t arrival = own.arrival[op];
      const int64_t end = end_of(ops_of(m), own, op);
      const double waiting = static_cast<double>(row.last - arrival);
      const float late = static_cast<float>(arrival - row.usual);
      const float host_own = own.host_own[op], own_ns = own_ns_of(own, op, row.timed);
      ++waits.ops;
      waits.timed += row.timed;
      waits.waiting_ns += waited_ns(ops_of(m), op, waiting);
      waits.moving_ns += end > row.last ? static_cast<double>(end - row.last) : 0;
      waits.lateness.add(late);
      past.lateness[op - begin] = late;
      past.waiting[op - begin] = static_cast<float>(waiting);
      if (row.before != 0) {
        past.since[op - begin] = static_cast<float>(arrival - row.before);
        past.interval[op - begin] = std::min(past.since[op - begin], own_ns);
      }
      if (!row.uneven) continue;
      owns_[i * stride_ + m] = own_ns;
      row.first_use = row.first_use || host_own < 0;
      if (late > kJitterNs) row.own_of_late = std::max(row.own_of_late, own_ns);
    }
  }

  float median_of(uint32_t i, Column<float> ExclusiveTimes::*column) {
    values_.resize(size_);
    for (size_t m = 0; m < size_; ++m) values_[m] = (own_of(m).*column)[op_of(m, i)];
    return lower_median(std::span(values_));
  }

  // By how much the segments of each member are longer for certain than those of its stage usually are. Where
  // work goes on beside the operation before, as much of it is sure for each as that operation lasted for
  // whoever was in it for the shortest time.
  void compare_segments(uint32_t i) {
    longer_segments_.assign(size_, 0);
    overlapping_segments_.assign(size_, 0);
    const std::vector<uint32_t>& members = group_.by_stage;
    auto stage_of = [&](size_t at) { return own_of(members[at]).stage; };
    for (size_t first = 0, last = 0; first < members.size(); first = last) {
      std::vector<float> with_beside;
      float least_beside = std::numeric_limits<float>::max();
      values_.clear();
      for (; last < members.size() && stage_of(last) == stage_of(first); ++last) {
        const ExclusiveTimes& own = own_of(members[last]);
        const uint32_t op = op_of(members[last], i);
        values_.push_back(own.most_segments[op]);
        with_beside.push_back(own.most_segments[op] + own.beside_segments[op]);
        least_beside = std::min(least_beside, own.beside_segments[op]);
      }
      const float usual = lower_median(std::span(values_));
      const float overlapping = lower_median(std::span(with_beside)) - least_beside;
      for (size_t at = first; at < last; ++at) {
        const uint32_t m = members[at];
        const float least = own_of(m).least_segments[op_of(m, i)];
        longer_segments_[m] = std::max(least - usual, 0.0f);
        overlapping_segments_[m] = std::max(least - std::max(usual, overlapping), 0.0f);
      }
    }
  }

  void suspect(uint32_t i) {
    const Row& row = rows_[i];
    const std::span<float> owns(&owns_[i * stride_], size_);
    // Whether the median is more than jitter below the most: without looking for it.
    const auto below =
        std::count_if(owns.begin(), owns.end(), [&](float own) { return row.own_of_late - own > kJitterNs; });
    if (static_cast<size_t>(below) <= (size_ - 1) / 2) return;
    const float own = lower_median(owns);
    // By hosts alone, all own time is the host's.
    const float host_own = row.timed ? median_of(i, &ExclusiveTimes::host_own) : own;
    const float gpu_own = row.timed ? median_of(i, &ExclusiveTimes::gpu_own) : 0;
    const float cadence = median_of(i, &ExclusiveTimes::cadence);
    const bool has_segments = row.timed && !group_.by_stage.empty();
    if (has_segments) compare_segments(i);
    std::optional<float> error;
    std::optional<Stays> stays;
    for (size_t m = 0; m < size_; ++m) {
      const ExclusiveTimes& its = own_of(m);
      const uint32_t op = op_of(m, i);
      const float late =
          std::min(static_cast<float>(its.arrival[op] - row.usual), own_ns_of(its, op, row.timed) - own);
      if (late <= kJitterNs) continue;
      const float on_host = std::min(late, std::max(its.host_own[op] - host_own, 0.0f));
      const float segments = has_segments ? longer_segments_[m] : 0;
      const float longer_on_gpu = std::max(its.gpu_own[op] - gpu_own, 0.0f);
      const float on_gpu = std::min(late - on_host, longer_on_gpu + segments);
      const float host_part = std::min(on_host, std::max(its.cadence[op] - cadence, 0.0f));
      if (host_part + on_gpu <= kJitterNs) continue;
      if (!error) error = median_of(i, &ExclusiveTimes::error), stays = stays_at(i);
      const auto row_of_member = static_cast<uint32_t>(&group_.members[m].member() - job_.members.data());
      suspicions_.push_back(
          {.by = m,
           .late = {.host_ns = its.host[op],
                    .member = row_of_member,
                    .op = op,
                    .blame_ns = host_part + on_gpu,
                    .host_part_ns = host_part,
                    .behind = own <= kJitterNs,
                    .idle = its.idle[op] != 0,
                    .timed = row.timed,
                    .error_ns =
                        std::min(error_of(i, m, *error),
                                 stays->error_of(stay_of(m, op), 2 * gpu_error(m, op), host_part + on_gpu))},
           .gpu_ns = longer_on_gpu,
           .segments_ns = segments,
           .overlapping_segments_ns = has_segments ? overlapping_segments_[m] : 0});
    }
  }

  // How long members were in an operation that nobody leaves before the last has come, by each one's own
  // clock: who came later was in it for so much less, but for the time in which they left it, which is no
  // longer than the shortest stay. What that proves of a lateness needs no clock between hosts.
  struct Stays {
    float usual = 0, shortest = 0;

    // stamp_error: of its arrival and its end, together.
    float error_of(float stay, float stamp_error, float late) const {
      const float sure = std::max(usual - stay - shortest - stamp_error, 0.0f);
      return usual == 0 ? std::numeric_limits<float>::max() : std::max(late - sure, 0.0f);
    }
  };

  float stay_of(size_t m, uint32_t op) const {
    const int64_t end = end_of(ops_of(m), own_of(m), op);
    return end == 0 ? 0 : static_cast<float>(end - own_of(m).arrival[op]);
  }

  Stays stays_at(uint32_t i) {
    const model::Signature& signature = job_.signatures[rows_[i].signature];
    if (!rows_[i].timed || !job::match::waits_for_all(job_, signature)) return {};
    values_.clear();
    for (size_t m = 0; m < size_; ++m) {
      const uint32_t op = op_of(m, i);
      const auto source = static_cast<model::GpuTimeSource>(ops_of(m).gpu_source[op]);
      if (source == model::GpuTimeSource::kApi) return {};
      if (source == model::GpuTimeSource::kKernelCh && !job::match::ends_with_data(job_, signature))
        return {};
      values_.push_back(stay_of(m, op));
    }
    const float shortest = *std::min_element(values_.begin(), values_.end());
    if (shortest <= 0) return {};
    return {lower_median(std::span(values_)), shortest};
  }

  // Members of its own host are compared without the clock between hosts.
  float error_of(uint32_t i, size_t m, float usual_error) const {
    const bool timed = rows_[i].timed;
    const ExclusiveTimes& its = own_of(m);
    const uint32_t op = op_of(m, i);
    const float across = its.error[op] + usual_error;
    if (across <= kJitterNs) return across;
    const uint32_t host = host_of(m);
    const float own = own_ns_of(its, op, timed);
    float best = across;
    for (size_t other = 0; other < size_; ++other) {
      if (other == m || host_of(other) != host) continue;
      const ExclusiveTimes& there = own_of(other);
      const uint32_t same = op_of(other, i);
      const float apart = static_cast<float>(its.arrival[op] - there.arrival[same]);
      const float longer = own - own_ns_of(there, same, timed);
      if (std::min(apart, longer) > kJitterNs)
        best = std::min(best, gpu_error(m, op) + gpu_error(other, same));
    }
    return best;
  }
  uint32_t host_of(size_t m) const { return job_.processes[group_.members[m].member().process].host; }
  float gpu_error(size_t m, uint32_t op) const {
    return static_cast<float>(std::max(ops_of(m).gpu_error_ns[op], 0));
  }

  const Group& group_;
  const Job& job_;
  const size_t size_, stride_;
  Row rows_[kBlock];
  std::vector<uint32_t> ops_;      // of the block, member by member; kNoRow: a gap
  std::vector<int64_t> arrivals_;  // operation by operation
  std::vector<float> owns_;        // the same, of those that are uneven
  std::vector<float> values_;
  std::vector<float> longer_segments_, overlapping_segments_;  // by member
  int64_t before_ = 0;  // last arrival at the operation before; 0 unknown
  GroupLateness result_;
  std::vector<Suspicion> suspicions_;
};

Group group_of(const Job& job, const std::vector<ExclusiveTimes>& times,
               const std::vector<uint32_t>& members) {
  Group group{job, times, {}, members.size() == job.comms[job.members[members[0]].comm].members.size(), {}};
  group.until = model::kNoIndex;
  uint32_t fewest = model::kNoIndex;
  for (uint32_t row : members) {
    const Member& member = job.members[row];
    fewest = std::min(fewest, member.ops);
    group.members.emplace_back(job, member);
    group.from = std::max(group.from, job.oldest_index(member));
    group.until = std::min(group.until, job.next_index(member));
  }
  auto stage_of = [&](uint32_t m) { return times[job.members[members[m]].process].stage; };
  for (uint32_t m = 0; m < members.size(); ++m) {
    if (stage_of(m) != 0) group.by_stage.push_back(m);
  }
  std::stable_sort(group.by_stage.begin(), group.by_stage.end(),
                   [&](uint32_t a, uint32_t b) { return stage_of(a) < stage_of(b); });
  group.until = std::max(group.from, group.until);
  if (group.until - group.from > most_indexes(fewest)) group.until = group.from;
  return group;
}

void add(GroupLateness& sum, const GroupLateness& part) {
  for (size_t m = 0; m < sum.members.size(); ++m) sum.members[m].add(part.members[m]);
  sum.first_ns = std::min(sum.first_ns, part.first_ns);
  sum.last_ns = std::max(sum.last_ns, part.last_ns);
  sum.compared += part.compared;
  sum.timed += part.timed;
}

}  // namespace

GroupComparer::GroupComparer(const Job& job, const std::vector<ExclusiveTimes>& times,
                             const MemberTable& table, std::vector<uint32_t> members)
    : job_(job), times_(times), table_(table), members_(std::move(members)) {}

void GroupComparer::compare(size_t threads) {
  const Group group = group_of(job_, times_, members_);
  for (uint32_t row : members_) {
    const Column<float> unknown(job_.members[row].ops, std::numeric_limits<float>::quiet_NaN());
    past_.push_back({row, unknown, unknown, unknown, unknown});
  }
  const uint32_t rows = group.until - group.from;
  const auto pieces = static_cast<uint32_t>(
      threads == 1 ? 1 : std::clamp<size_t>(rows / kLeastPiece, 1, threads * kPiecesPerThread));
  auto begin = [&](size_t piece) {
    return group.from + static_cast<uint32_t>(uint64_t{rows} * piece / pieces / kBlock * kBlock);
  };
  auto end = [&](size_t piece) { return piece + 1 == pieces ? group.until : begin(piece + 1); };

  LeastMoving least;
  if (!group.all) {
    std::vector<LeastMoving> parts(pieces);
    for_each_parallel(pieces, threads,
                      [&](size_t i) { Piece(group).learn_moving(begin(i), end(i), parts[i]); });
    for (const LeastMoving& part : parts) {
      for (const auto& [signature, moving] : part) keep_least(least, signature, moving);
    }
  }
  std::vector<std::optional<Piece>> parts(pieces);
  for_each_parallel(pieces, threads,
                    [&](size_t i) { parts[i].emplace(group).compare(begin(i), end(i), least, past_); });
  result_.members.resize(members_.size());
  for (const std::optional<Piece>& part : parts) {
    add(result_, part->result());
    suspicions_.insert(suspicions_.end(), part->suspicions().begin(), part->suspicions().end());
  }
}

GroupLateness GroupComparer::finish() {
  result_.late = assign_blame(job_, times_, table_, past_, suspicions_);
  past_ = {};
  suspicions_ = {};
  return std::move(result_);
}

}  // namespace lockstep::analysis::straggler
