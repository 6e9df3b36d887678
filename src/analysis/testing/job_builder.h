// SPDX-License-Identifier: Apache-2.0
// Makes small jobs for the tests of the analyses: ranks, communicators, and what each rank called when, in
// the order of the calls. Times are milliseconds since kStart, so that tests read as stories. What a test
// does not say is healthy: one host, files closed in order half a second after the last call, no losses.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/job.h"

namespace lockstep::analysis::testing {

inline constexpr int64_t kStart = 1'760'000'000'000'000'000;  // ns since the epoch
constexpr int64_t at_ms(double ms) { return kStart + static_cast<int64_t>(ms * 1e6); }

// One call of one rank. Negative times: unknown, or never.
struct Call {
  std::string func = "AllReduce";
  double called_ms = -1;
  uint64_t bytes = 1 << 20;
  int root = 0;
  int peer = -1;  // rank in the communicator; then func is "Send" or "Recv"
  double gpu_start_ms = -1, gpu_end_ms = -1;
  double launched_ms = -1;  // left out: 0.005 after the call
  double replayed_ms = -1;  // when its graph ran, which was captured at the call; nothing is launched then
  std::string datatype = "ncclFloat32", algo = "RING", proto = "SIMPLE";
  uint32_t seq = model::kNoIndex;  // left out: counted per communicator and function
};

class JobBuilder {
 public:
  // Ranks 0..ranks-1, `per_host` of them on each host (0: all on one). Hosts are called node0, node1, ...
  explicit JobBuilder(uint32_t ranks, uint32_t per_host = 0);

  // A communicator of these global ranks, in this order. Its number is what the other functions take.
  uint32_t comm(const std::string& name, const std::vector<uint32_t>& ranks);
  // A communicator of all ranks.
  uint32_t world(const std::string& name = "world");
  // This rank never entered it, or left no trace of it.
  void leave_out(uint32_t comm, uint32_t rank);

  void call(uint32_t rank, uint32_t comm, const Call& call);
  // `count` calls of all members, `every_ms` apart, done on the GPU after `gpu_ms`; 0: no GPU times.
  void steps(uint32_t comm, uint32_t count, double first_ms, double every_ms, double gpu_ms = 0.5);

  // The process' capture went on until then; left alone, 500 ms after its last call.
  void heartbeat(uint32_t rank, double ms);
  // Its file was not closed in order.
  void killed(uint32_t rank);
  // Everybody's capture went on until then, and ended in a kill.
  void all_killed_at(double ms);
  void finalized(uint32_t comm, uint32_t rank, double ms);
  // Left no file.
  void without(uint32_t rank);

  // For whatever else a test wants: valid until `build`.
  model::JobProcess& process(uint32_t rank) { return processes_[rank]; }
  // Row of the job's members; a rank left out has none.
  uint32_t member(uint32_t comm, uint32_t rank) const { return members_.at({comm, rank}); }
  model::StringId text(std::string_view text) { return strings_.intern(text); }

  // Matched, and clocks of hosts with equal boot ids aligned; each host has its own boot unless `one_clock`.
  model::Job build(bool one_clock = true);

 private:
  struct Bucket {  // what lies together in JobOps: collectives (peer -1), or a lane
    std::vector<Call> calls;
  };
  using BucketKey = std::tuple<uint32_t, int, bool>;  // comm, peer, is_send

  uint32_t signature(model::Job& job, const Call& call);
  void append(model::Job& job, model::JobOps& ops, const Call& call, uint32_t index, uint32_t seq);
  void lay_out(model::Job& job, uint32_t rank, uint32_t process);

  model::StringPool strings_;
  uint32_t per_host_;
  std::vector<model::JobProcess> processes_;
  std::vector<bool> absent_;
  std::vector<double> last_ms_;
  struct Comm {
    std::string name;
    std::vector<uint32_t> ranks;
  };
  std::vector<Comm> comms_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> members_;  // (comm, rank) -> row, dense
  std::map<std::pair<uint32_t, uint32_t>, double> finalized_;
  std::vector<std::map<BucketKey, Bucket>> buckets_;  // by rank
};

}  // namespace lockstep::analysis::testing
