// SPDX-License-Identifier: Apache-2.0
// Decides what became of each rank: running, closed, stopped, dead or out of reach. Liveness is known for
// processes of this machine alone. For the others the end of the record decides: one that ends clearly before
// those of its peers, and was busy until then, belongs to a process that died. "Clearly" is three seconds
// more than the uncertainty of the clocks, as heartbeats come once a second. If all processes of a host end
// at the same moment, the host is the cause.
//
// While the job is live, the file of another host may just arrive late. An early end is then called stale,
// not dead.
#include "analysis/hang/job_state.h"

#include <algorithm>
#include <set>

#include "job/match/match.h"
#include "model/limits.h"
#include "model/recording_modes.h"
#include "model/restarts.h"

namespace lockstep::analysis::hang {
namespace {

using model::kNoRow;
using model::Liveness;

// Ends that differ by less were one kill: heartbeats come once a second.
constexpr int64_t kClearlyEarlier = 3'000'000'000;
// Records of one call are no further apart; two operations seldom lie in it.
constexpr int64_t kCallNs = 100'000;

// That it has ended proves that all members have entered it.
bool shows_all(const model::Job& job, const model::JobOps& ops, uint32_t op) {
  const model::Signature& signature = job.signatures[ops.signature[op]];
  const auto source = static_cast<model::GpuTimeSource>(ops.gpu_source[op]);
  return ops.gpu_end_ns[op] != 0 && source != model::GpuTimeSource::kApi &&
         job::match::waits_for_all(job, signature) &&
         (source != model::GpuTimeSource::kKernelCh || job::match::ends_with_data(job, signature));
}

}  // namespace

JobState::JobState(const model::Job& job, Cadence& cadence)
    : job_(job),
      gaps_(model::record_gaps(job)),
      unreadable_files_(model::unreadable_files(job)),
      cadence_(cadence) {
  for (uint32_t i = 0; i < gaps_.size(); ++i) {
    if (!is_off(i)) continue;
    gaps_[i].at_end = true;
    gaps_[i].text = "its recording was switched off";
  }
  make_actors();
  find_history();
  find_begun();
  find_cut_short();
  find_absent();
  find_rough_offsets();
  find_dead();
  find_silent_hosts();
}

void JobState::find_begun() {
  begun_.assign(job_.comms.size(), 0);
  for (const model::Member& member : job_.members) {
    if (member.ops == 0 || member.alignment == model::Member::Alignment::kNone) continue;
    const model::JobOps& ops = job_.ops(member);
    uint32_t& begun = begun_[member.comm];
    // From the newest on: once one has ended, so have all before it, on every member.
    for (uint32_t back = 1; back <= std::min(member.ops, kDeepestQueue); ++back) {
      const uint32_t op = member.first + member.ops - back;
      if (ops.index[op] < begun) break;
      if (shows_all(job_, ops, op)) {
        begun = ops.index[op] + 1;
        break;
      }
    }
  }
}

void JobState::make_actors() {
  actor_of_member_.assign(job_.members.size(), kNoRow);
  // Ranks that communicate; a process without communicators that has one of them is a helper, such as a data
  // loader.
  std::set<int32_t> ranks;
  for (const model::JobProcess& process : job_.processes) {
    if (!process.members.empty() && process.row.rank >= 0) ranks.insert(process.row.rank);
  }
  for (uint32_t p = 0; p < job_.processes.size(); ++p) {
    const model::JobProcess& process = job_.processes[p];
    // A helper of a rank: it communicates with nobody, and its rank is another's.
    if (process.members.empty() && !ranks.empty() &&
        (process.row.rank < 0 || ranks.contains(process.row.rank)))
      continue;
    Actor actor;
    actor.process = p;
    actor.rank = process.row.rank;
    actor.end_ns = std::max(process.row.heartbeat_ns, process.row.last_ns);
    if (gaps_[p].unproven && process.row.heartbeat_ns != 0) actor.end_ns = process.row.heartbeat_ns;
    actor.quiet_ns =
        process.row.last_ns <= 0 || torn(p) || gaps_[p].unproven ? 0 : actor.end_ns - process.row.last_ns;
    // Where a recording ends says nothing of the process.
    if (process.row.closed || process.row.window != 0) actor.fate = Fate::kClosed;
    if (process.liveness == Liveness::kStopped) actor.fate = Fate::kStopped;
    std::set<uint32_t> comms;
    // Two members of one communicator in one process: it drives several GPUs, and each may wait by itself.
    bool several = false;
    for (uint32_t member : process.members) several |= !comms.insert(job_.members[member].comm).second;
    // A rank of its own, or each GPU as one; then the member's rank in the communicator names it.
    if (!several) {
      for (uint32_t member : process.members)
        actor_of_member_[member] = static_cast<uint32_t>(actors_.size());
      actors_.push_back(actor);
    } else {
      for (uint32_t member : process.members) {
        actor.member = member;
        actor.rank = job_.members[member].rank;
        actor_of_member_[member] = static_cast<uint32_t>(actors_.size());
        actors_.push_back(actor);
      }
    }
  }
}

bool JobState::is_off(uint32_t process) const {
  return model::is_off(job_.text(job_.processes[process].row.modes));
}

void JobState::find_history() {
  history_.assign(job_.comms.size(), false);
  const std::vector<bool> replaced = model::replaced_processes(job_);
  for (const Actor& actor : actors_) {
    if (!replaced[actor.process]) continue;
    for (uint32_t member : job_.processes[actor.process].members) history_[job_.members[member].comm] = true;
  }
}

void JobState::find_cut_short() {
  cut_short_.assign(job_.processes.size(), false);
  for (uint32_t i = 0; i < job_.processes.size(); ++i)
    cut_short_[i] = job_.processes[i].row.window != 0 || torn(i);
  for (size_t i = 0; i < job_.losses.size(); ++i) {
    std::string_view kind = job_.text(job_.losses.kind[i]);
    if (job_.losses.process[i] < cut_short_.size() &&
        (kind == "disk_full" || kind == "size_cap" || kind == "no_log" || kind == "unwritten_tail"))
      cut_short_[job_.losses.process[i]] = true;
  }
}

void JobState::find_absent() {
  // A helper's file shows that its rank is there, too.
  std::set<int32_t> seen;
  for (const model::JobProcess& process : job_.processes) seen.insert(process.row.rank);
  for (int32_t rank = 0; rank < job_.expected_ranks; ++rank) {
    if (!seen.contains(rank)) absent_.push_back(rank);
  }
  // A launcher that says nothing of ranks leaves no rank to be absent.
  if (static_cast<int32_t>(absent_.size()) == job_.expected_ranks) absent_.clear();
  ranks_ = std::max(actors_.size() + absent_.size(), static_cast<size_t>(std::max(job_.expected_ranks, 0)));
}

void JobState::find_rough_offsets() {
  rough_offset_.assign(job_.hosts.size(), std::nullopt);
  auto unknown = [](const model::JobHost& host) { return !host.clock.known(); };
  if (job_.comms.empty() || std::none_of(job_.hosts.begin(), job_.hosts.end(), unknown)) return;
  // The communicator with most members ties most hosts together.
  auto largest = std::max_element(job_.comms.begin(), job_.comms.end(), [](const auto& a, const auto& b) {
    return a.members.size() < b.members.size();
  });
  // The newest operation that all have called: where they stopped, they were close together. It is right to
  // about one gap of the cadence, which is taken as its uncertainty.
  uint32_t shared = model::kNoIndex;
  for (uint32_t row : largest->members) {
    if (row != kNoRow) shared = std::min(shared, job_.next_index(job_.members[row]));
  }
  std::optional<int64_t> first;
  for (uint32_t row : largest->members) {
    if (row == kNoRow || shared == 0) continue;
    const model::Member& member = job_.members[row];
    auto op = job_.op_at(member, shared - 1);
    if (!op || job_.ops(member).entered_ns(*op) == 0) continue;
    int64_t entered = job_.ops(member).entered_ns(*op);
    if (!first) first = entered;
    std::optional<int64_t>& offset = rough_offset_[job_.processes[member.process].host];
    if (!offset) offset = entered - *first;
  }
}

std::optional<model::Job::CommonTime> JobState::common(uint32_t process, int64_t ns) const {
  // All hosts in one way or all in the other.
  const std::optional<int64_t>& offset = rough_offset_[job_.processes[process].host];
  if (offset) return model::Job::CommonTime{ns - *offset, cadence_.of_job().normal_ns};
  return job_.common_ns(process, ns);
}

void JobState::find_dead() {
  is_live_ = std::any_of(job_.processes.begin(), job_.processes.end(), [](const model::JobProcess& p) {
    return p.liveness == Liveness::kRunning || p.liveness == Liveness::kStopped || p.beats;
  });
  // Ends are compared within a host, where clocks are equal, and across hosts, less the uncertainty.
  std::vector<int64_t> host_end(job_.hosts.size());
  std::optional<int64_t> common_end;
  for (const Actor& actor : actors_) {
    int64_t& end = host_end[job_.processes[actor.process].host];
    end = std::max(end, actor.end_ns);
    if (auto at = common(actor.process, actor.end_ns))
      common_end = std::max(common_end.value_or(at->ns), at->ns);
  }
  for (Actor& actor : actors_) {
    if (actor.fate != Fate::kPresent) continue;
    const model::JobProcess& process = job_.processes[actor.process];
    const Liveness liveness = process.liveness;
    const int64_t later_there = host_end[process.host] - actor.end_ns;
    int64_t later = later_there;
    if (auto at = common(actor.process, actor.end_ns); at && common_end)
      later = std::max(later, *common_end - at->ns - at->half_width_ns);
    // Another host's files may reach this one late. What of the same host came later shows that they do not.
    const bool may_be_late = is_live_ && liveness == Liveness::kUnknown && later_there <= kClearlyEarlier;
    if (liveness == Liveness::kRunning || process.beats || may_be_late) {
      actor.stale = later > kClearlyEarlier;
      continue;
    }
    // Early or not, it counts as dead only with more than that: the kernel says so, or it worked until its
    // end.
    actor.early = later > kClearlyEarlier;
    if (liveness == Liveness::kGone && is_live_) {
      actor.fate = Fate::kDead;
    } else if (actor.early && !torn(actor.process) && actor.quiet_ns <= cadence_.of_job().suspicious_ns()) {
      // One that had been quiet for long before it ended did not hold the job by ending.
      actor.fate = Fate::kDead;
    }
  }
}

void JobState::find_silent_hosts() {
  struct Host {
    size_t processes = 0, dead = 0;
    int64_t first_end = INT64_MAX, last_end = 0;
  };
  // Processes that the kernel reports as gone died by themselves: their host is up, as it said so.
  std::vector<Host> hosts(job_.hosts.size());
  for (const Actor& actor : actors_) {
    Host& host = hosts[job_.processes[actor.process].host];
    ++host.processes;
    if (actor.fate != Fate::kDead || job_.processes[actor.process].liveness == Liveness::kGone) continue;
    ++host.dead;
    host.first_end = std::min(host.first_end, actor.end_ns);
    host.last_end = std::max(host.last_end, actor.end_ns);
  }
  for (Actor& actor : actors_) {
    const Host& host = hosts[job_.processes[actor.process].host];
    if (hosts.size() > 1 && host.processes > 1 && host.dead == host.processes &&
        host.last_end - host.first_end <= kClearlyEarlier)
      actor.fate = Fate::kUnreachable;
  }
}

bool JobState::may_lack_newest(const model::Member& member) const {
  if (!gap(member.process).any()) return false;
  // If the process recorded something clearly after the newest operation here, a later one may be among what
  // is lost.
  const int64_t last_ns = job_.processes[member.process].row.last_ns;
  if (member.ops == 0) return last_ns != 0;
  const model::JobOps& ops = job_.ops(member);
  const uint32_t op = member.first + member.ops - 1;
  const int64_t known_ns =
      std::max({ops.called_ns[op], ops.enqueued_ns[op], ops.launched_ns[op], ops.gpu_end_ns[op]});
  return known_ns + kCallNs < last_ns;
}

uint32_t JobState::torn_actor(int32_t rank) const {
  auto at = std::find_if(actors_.begin(), actors_.end(), [&](const Actor& actor) {
    return rank >= 0 && actor.rank == rank && torn(actor.process);
  });
  return at == actors_.end() ? kNoRow : static_cast<uint32_t>(at - actors_.begin());
}

// The members that are here name the others.
JobState::Spacing JobState::spacing(uint32_t comm) const {
  const model::JobComm& row = job_.comms[comm];
  // A communicator of all ranks numbers them as the launcher does.
  if (row.ranks == job_.expected_ranks) return {.first = 0, .global = 0, .stride = 1};
  int32_t a = -1, b = -1;
  for (int32_t i = 0; static_cast<size_t>(i) < row.members.size(); ++i) {
    if (row.members[static_cast<size_t>(i)] != kNoRow) (a < 0 ? a : b) = i;
  }
  if (b < 0) return {};
  const int32_t from = actor_at(row.members[static_cast<size_t>(a)]).rank;
  const int32_t to = actor_at(row.members[static_cast<size_t>(b)]).rank;
  // Any other spacing than an even, ascending one would be a guess, and a guess could name the wrong rank.
  if (from < 0 || to <= from || (to - from) % (b - a) != 0) return {};
  const Spacing spacing{.first = a, .global = from, .stride = (to - from) / (b - a)};
  for (int32_t i = a; i <= b; ++i) {
    const uint32_t member = row.members[static_cast<size_t>(i)];
    if (member != kNoRow && actor_at(member).rank != from + (i - a) * spacing.stride) return {};
  }
  return spacing;
}

int32_t JobState::global_rank(const Spacing& spacing, uint32_t comm, int32_t rank) const {
  const model::JobComm& row = job_.comms[comm];
  if (rank >= 0 && static_cast<size_t>(rank) < row.members.size()) {
    const uint32_t member = row.members[static_cast<size_t>(rank)];
    if (member != kNoRow) return actor_at(member).rank;
  }
  if (spacing.stride == 0) return -1;
  const int64_t global = spacing.global + (rank - spacing.first) * spacing.stride;
  const int64_t end = job_.expected_ranks < 0 ? model::kMostRanks : job_.expected_ranks;
  return global >= 0 && global < end ? static_cast<int32_t>(global) : -1;
}

std::vector<int32_t> JobState::absent_of(uint32_t comm) const {
  const model::JobComm& row = job_.comms[comm];
  const Spacing known = spacing(comm);
  std::vector<int32_t> absent;
  for (int32_t rank = 0; rank < row.ranks; ++rank) {
    const size_t at = static_cast<size_t>(rank);
    if (at >= row.members.size() || row.members[at] == kNoRow)
      absent.push_back(global_rank(known, comm, rank));
  }
  return absent;
}

std::optional<int64_t> JobState::between(uint32_t a_process, int64_t a_ns, uint32_t b_process,
                                         int64_t b_ns) const {
  if (job_.processes[a_process].host == job_.processes[b_process].host) return b_ns - a_ns;
  auto a = common(a_process, a_ns), b = common(b_process, b_ns);
  if (!a || !b) return std::nullopt;
  return b->ns - a->ns - a->half_width_ns - b->half_width_ns;
}

}  // namespace lockstep::analysis::hang
