// SPDX-License-Identifier: Apache-2.0
// Who takes part and what became of them. An actor is what can wait or be waited for: a rank. That is a
// process, or one communicator of a process that drives several GPUs. Made once; read-only afterwards.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/cadence.h"
#include "model/job.h"
#include "model/record_gaps.h"

namespace lockstep::analysis::hang {

inline constexpr uint32_t kDeepestQueue = 4096;  // operations in flight of one member

enum class Fate : uint8_t {
  kPresent,      // runs, or was killed together with the others
  kClosed,       // its files were closed in order
  kStopped,      // SIGSTOP or a debugger
  kDead,         // ended without closing its files while others went on
  kUnreachable,  // so did all of its host
};

inline bool is_gone(Fate fate) { return fate != Fate::kPresent && fate != Fate::kClosed; }

struct Actor {
  uint32_t process = 0;
  uint32_t member = model::kNoRow;  // only with several GPUs in the process
  int32_t rank = -1;                // global; -1 unknown
  Fate fate = Fate::kPresent;
  bool early = false;  // ended unclosed, and clearly before the last of the others
  bool stale =
      false;  // what reaches us of it ends clearly before that of the others, and nothing says that it does
  int64_t end_ns = 0;    // until when it was watched: its last record or heartbeat, on its host's clock
  int64_t quiet_ns = 0;  // from its last record until then; 0 where that is not in its files
};

class JobState {
 public:
  JobState(const model::Job& job, Cadence& cadence);

  const model::Job& job() const { return job_; }
  const std::vector<Actor>& actors() const { return actors_; }
  const Actor& actor(uint32_t actor) const { return actors_[actor]; }
  uint32_t actor_of(uint32_t member) const { return actor_of_member_[member]; }
  const Actor& actor_at(uint32_t member) const { return actors_[actor_of_member_[member]]; }
  // How many operations of a communicator, from index 0 on, all members have begun: one of them has ended the
  // last of these, which nobody leaves before all have entered. Of a member, 0 where its indexes do not
  // compare.
  uint32_t begun(uint32_t comm) const { return begun_[comm]; }
  uint32_t begun(const model::Member& member) const {
    return member.alignment == model::Member::Alignment::kNone ? 0 : begun_[member.comm];
  }
  // A member's process was started again under the same rank: the communicator is history.
  bool is_history(uint32_t comm) const { return history_[comm]; }
  // Capture of the process ended before the process did: what it called afterwards is not known.
  bool cut_short(uint32_t process) const { return cut_short_[process]; }
  // Its recording was switched off, and not on again.
  bool is_off(uint32_t process) const;
  // Its file shows whether the process closed it; other tools' files do not.
  bool is_captured(uint32_t process) const {
    return job_.files.empty() && job_.processes[process].row.retention != 0;
  }
  // Some process runs, or its heartbeat says so: more may come.
  bool is_live() const { return is_live_; }
  // Its files are cut or damaged: what they do not mention, it may have done all the same.
  bool torn(uint32_t process) const { return gaps_[process].at_end; }
  const model::RecordGap& gap(uint32_t process) const { return gaps_[process]; }
  // What is missing inside the record of the member's process may lie behind its newest operation here: later
  // records are left.
  bool may_lack_newest(const model::Member& member) const;
  bool has_gaps() const {
    return std::any_of(gaps_.begin(), gaps_.end(), [](const model::RecordGap& gap) { return gap.any(); });
  }
  // The actor of a torn process that is this global rank; kNoRow none.
  uint32_t torn_actor(int32_t rank) const;
  // Files of which nothing can be read: they may be those of absent ranks.
  size_t unreadable_files() const { return unreadable_files_; }
  // Global ranks of the job that left no file, ascending.
  const std::vector<int32_t>& absent() const { return absent_; }
  // Ranks that the job has, absent ones included.
  size_t ranks() const { return ranks_; }
  // Global rank of a member of a communicator, also of one that is not in the run; -1 unknown.
  int32_t global_rank(uint32_t comm, int32_t rank) const { return global_rank(spacing(comm), comm, rank); }
  // Those of a communicator's ranks that are not in the run: global where known, else -1.
  std::vector<int32_t> absent_of(uint32_t comm) const;
  // How much later `b` was than `a`; nothing if their clocks do not compare.
  std::optional<int64_t> between(uint32_t a_process, int64_t a_ns, uint32_t b_process, int64_t b_ns) const;

 private:
  // Global ranks of a communicator are evenly spaced: `global` is that of its rank `first`. Stride 0: they
  // are not.
  struct Spacing {
    int64_t first = 0, global = 0, stride = 0;
  };
  Spacing spacing(uint32_t comm) const;
  int32_t global_rank(const Spacing& spacing, uint32_t comm, int32_t rank) const;
  void make_actors();
  void find_history();
  void find_begun();
  void find_cut_short();
  void find_absent();
  void find_rough_offsets();
  void find_dead();
  void find_silent_hosts();
  // On the reference host's clock; if that is not known, as if the newest operation that all have called had
  // been called at the same time.
  std::optional<model::Job::CommonTime> common(uint32_t process, int64_t ns) const;

  const model::Job& job_;
  std::vector<Actor> actors_;
  std::vector<uint32_t> actor_of_member_;
  std::vector<uint32_t> begun_;  // by communicator
  std::vector<bool> history_, cut_short_;
  std::vector<model::RecordGap> gaps_;  // by process
  size_t unreadable_files_ = 0;
  std::vector<int32_t> absent_;
  Cadence& cadence_;
  std::vector<std::optional<int64_t>> rough_offset_;  // by host
  size_t ranks_ = 0;
  bool is_live_ = false;
};

}  // namespace lockstep::analysis::hang
