// SPDX-License-Identifier: Apache-2.0
// What NCCL's RAS subsystem said of a job, at one moment or at several. Plain data, in the words of NCCL.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::readers::ras {

// Numbers of ncclResult_t.
inline constexpr int32_t kSuccess = 0, kRemoteError = 6, kInProgress = 7;

// A rank of a communicator, and the process that drives it.
struct RankPlace {
  int32_t rank = -1;  // in the communicator
  std::string host;   // its address, as RAS gives it; empty unknown
  int64_t pid = -1;
  int32_t cuda_device = -1, nvml_device = -1;
  int32_t global = -1;  // rank of the job, where the snapshot itself gives it
};

struct Rank : RankPlace {
  int32_t init_state = kSuccess, async_error = kSuccess;
  bool finalize_called = false, destroyed = false, aborted = false;
  // Operations that it has launched since the communicator began, by function, in the order of the snapshot.
  std::vector<std::pair<std::string, uint64_t>> launched;
};

struct MissingRank : RankPlace {
  bool unresponsive = false;     // its process did not answer
  bool considered_dead = false;  // RAS has given its process up
};

// Ranks of which only their number is known.
struct CountedRanks {
  std::string func;
  uint64_t launched = 0, ranks = 0;
};

struct Comm {
  std::string hash;  // "0x3548175347e056"
  int32_t size = -1;
  // From the client's text: of launched operations only those of functions that are uneven, of ranks only
  // those that differ, or that are all the others.
  bool is_summary = false;
  std::vector<CountedRanks> counted{};  // is_summary
  std::vector<Rank> ranks;              // by rank
  std::vector<MissingRank> missing;     // by rank
};

struct Snapshot {
  std::string file;          // that it is from
  std::string nccl_version;  // "2.28.9"
  std::string time;          // local time of the process that answered, whole seconds; empty unknown
  std::vector<Comm> comms;
  double collection_s = 0;  // how long RAS took to ask all processes
  uint64_t timeouts = 0;    // of RAS' own messages meanwhile
  uint64_t bad_ranks = 0;   // ranks that cannot be, or are there twice
  uint64_t left_out = 0;    // beyond what is kept of a snapshot
  bool cut = false;         // it ends early
  bool is_text = false;     // the client's words for people, not its JSON
};

struct RasModel {
  std::vector<Snapshot> snapshots;            // by time, those of one second in the order of the files
  std::vector<std::string> unreadable_files;  // what is wrong, and with which
};

}  // namespace lockstep::readers::ras
