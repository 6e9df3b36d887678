// SPDX-License-Identifier: Apache-2.0
// What holds somebody up: an operation that some ranks are in and that does not go on, with those who wait in
// it and those it waits for. Only waits that are longer than the run's own cadence explains.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/job_state.h"
#include "analysis/hang/progress.h"
#include "job/match/match.h"

namespace lockstep::analysis::hang {

struct Block {
  enum class Kind : uint8_t {
    kCollective,  // some members have called it and some have not
    kPair,        // a send or receive whose other end was not called
    kInit,        // some members are in the communicator and some never came
    kMismatch,    // members are in different operations
    kStuck,       // all have called it; the GPU or the network does not finish it
    kSilent,      // all have called it; no record shows whether it finished, or it has begun nowhere
  } kind = Kind::kCollective;
  uint32_t comm = 0;
  uint32_t index = 0;  // of the operation; with kPair, between the two
  uint32_t process = model::kNoRow,
           op = 0;                         // who waits longest, and the operation in its JobOps; kInit: none
  std::vector<uint32_t> waiting, missing;  // actors, ascending, each once
  // When each of them called it, on its own clock; 0 unknown or not called.
  std::vector<int64_t> waiting_ns, missing_ns;
  // Members that have called it and, by their GPU times, stand behind something older: rows of the job, and
  // the operation.
  struct Behind {
    uint32_t member = 0, op = 0;
  };
  std::vector<Behind> behind;
  std::vector<int32_t> absent;  // ranks of the communicator that left no file; global where known, else -1
  int64_t since_ns = 0;         // on the clock of `process`
  int64_t waited_ns = 0;
  Patience patience;
  const job::match::Difference* difference = nullptr;  // kMismatch
  bool is_fact = false;                                // however long the wait is
  bool pair = false;                                   // of a send or receive
  // Records with gaps take part: that those missing are, is a guess.
  bool uncertain = false;
  bool certain() const { return waited_ns > patience.certain_ns(); }
  // Those missing have called it, too.
  bool all_called() const { return kind == Kind::kMismatch || kind == Kind::kStuck || kind == Kind::kSilent; }
};

// The longest time that anybody waits in each, longer than is normal. `differences` outlives the blocks.
std::vector<Block> find_blocks(const JobState& job_state, Cadence& cadence,
                               const std::vector<job::match::Difference>& differences);

// Transfers that have not moved for longer than `patience` allows, of members of the communicator.
struct StuckStep {
  uint32_t member = model::kNoRow;
  const model::OpenStep* step = nullptr;
  int64_t waited_ns = 0;
};
std::vector<StuckStep> stuck_steps(const JobState& job_state, const Patience& patience, uint32_t comm);

}  // namespace lockstep::analysis::hang
