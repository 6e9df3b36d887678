// SPDX-License-Identifier: Apache-2.0
// What the live view says of each rank: how far it is behind the front of its communicators, and whether
// somebody should look at it. Remembers, from look to look, since when a rank has been behind without moving.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "live/live_run.h"
#include "model/names/who.h"

namespace lockstep::live {

// What a rank is, the worst first.
enum class Health {
  kGone,     // its process ended without closing its file
  kStopped,  // by a signal or a debugger
  kSilent,   // its capture library gives no sign of life, and nobody can look at the process
  kLate,     // others wait for it
  kWaits,    // it stands in an operation that a rank in one of the states above has not called
  kGood,
  kEnded,     // in order
  kReplaced,  // it is gone or silent, and its rank was started again since
  kHelper,    // no rank: it communicates with nobody, beside ranks that do; not shown
};
inline constexpr size_t kHealths = static_cast<size_t>(Health::kHelper) + 1;
std::string_view health_text(Health health);  // "gone", "stopped", ...

// One process: what it is and did is LiveRun's, where it stands among the others is found here.
struct RankRow {
  std::string who;  // "5", or "pid 1234" where the rank is unknown
  int32_t rank = -1;
  std::string host, pci;
  int32_t device = -1;  // as the host counts it; -1 unknown
  int64_t pid = 0;
  Health health = Health::kGood;
  std::optional<SeenOp> last, oldest_open;
  size_t open = 0;
  uint64_t behind = 0;  // operations, on the communicator where it is furthest behind
  int64_t late_ns = 0;  // the front began an operation that it has not, at least so long ago; 0 not behind
  std::string behind_comm, behind_func;  // of that communicator; the function whose front waits longest
  std::string behind_key;                // of that communicator
  std::string waits_for;                 // kWaits: "rank 0", "ranks 0 and 3"
  double ops_per_s = 0, bytes_per_s = 0;
  uint64_t dropped = 0;
  int64_t heartbeat_age_ns = -1;
};

// As sentences name it.
model::Who who_is(const RankRow& row);

// The verdict names the worst state that a rank is in, and of no other.
// All processes of a run at one look.
struct RankRows {
  std::vector<RankRow> rows;  // by rank
  std::string verdict;        // one sentence
  bool alarming = false;      // the verdict is bad news
};

class RankWatch {
 public:
  // `processes` as LiveRun gives them; rows come in their order. One thread, and the looks in the order of
  // time.
  RankRows look(const std::vector<SeenProcess>& processes);

 private:
  // A process that was behind in the last look.
  struct Standing {
    uint64_t progress = 0;  // sum over its communicators
    int64_t since_ns = 0;   // when it was first seen behind at this place
  };
  std::map<std::pair<std::string, int64_t>, Standing> standing_;  // by host and pid
};

}  // namespace lockstep::live
