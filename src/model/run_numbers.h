// SPDX-License-Identifier: Apache-2.0
// Numbers that are equal over a run, and counts that only a whole process gives: what tables of a run have
// beside the model's own columns. Computed for one trace at a time; what has to last over the run (hosts,
// communicators) is kept.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "model/trace.h"

namespace lockstep::model {

// Which numbers of operations mean the same on all ranks, as far as one trace shows: those of two ranks
// compare if they are counted from the same place. A ring has forgotten how many came before; only job/match,
// which has all ranks at hand, may then decide.
class OperationNumbers {
 public:
  static constexpr int64_t kFromBegin =
      INT64_MIN;  // of the communicator; else with which step counting began

  explicit OperationNumbers(const Trace& trace);
  // Of `index` of the collectives of a row of comms; nothing: not known.
  std::optional<int64_t> collectives_from(uint32_t comm) const { return collectives_from_[comm]; }
  // Of the n-th message of a pair and direction.
  std::optional<int64_t> messages_from() const { return messages_from_; }
  // Whether `index` of an operation means what it seems to: equal on all members. That of a message, or where
  // the communicator is unknown, is the process' own and nothing else.
  bool has_same_index(uint32_t comm, int32_t peer) const {
    return peer >= 0 || comm >= collectives_from_.size() || collectives_from_[comm] == kFromBegin;
  }

 private:
  std::vector<std::optional<int64_t>> collectives_from_;
  std::optional<int64_t> messages_from_;
};

class RunNumbers {
 public:
  // Fills the columns below for one trace. Traces come in the order of their source, so that numbers of
  // hosts, communicators and unknown devices are the same in every run over the same files.
  void compute(const Trace& trace);
  // Processes whose device nobody could name: each was given a number of its own from kUnknownGpu on.
  uint64_t unknown_gpus() const { return static_cast<uint64_t>(next_unknown_gpu_ - kUnknownGpu); }
  static constexpr int32_t kUnknownGpu = 100000;

  // By row of the trace's tables.
  std::vector<int32_t> process_node;                  // number of the host
  std::vector<uint32_t> comm_run;                     // equal on all members of a communicator
  std::vector<uint64_t> comm_collectives, comm_p2ps;  // operations of the member
  std::vector<int32_t> comm_same_index;               // 1: `index` of its collectives is equal on all members
  std::vector<int32_t> op_gpu;                        // run-wide device number
  std::vector<int32_t> kernel_gpu;  // gpu, or what stands for the unknown device of its process

 private:
  void compute_processes(const Trace& trace);
  void compute_comms(const Trace& trace);
  void compute_ops(const Trace& trace);
  void compute_kernels(const Trace& trace);
  // Of what names no device itself.
  int32_t process_gpu();

  std::map<std::tuple<std::string, std::string, std::string>, int32_t>
      nodes_;                                                    // by boot id, name, NCCL_HOSTID
  std::map<std::tuple<uint64_t, int32_t>, uint32_t> run_comms_;  // by comm id and size
  uint32_t next_run_comm_ = 0;
  int32_t next_unknown_gpu_ = kUnknownGpu;
  int32_t process_gpu_ = -1;  // of the trace at hand; -1 not known and not yet made up
};

}  // namespace lockstep::model
