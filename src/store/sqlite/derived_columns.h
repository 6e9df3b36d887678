// SPDX-License-Identifier: Apache-2.0
// The columns that only a merge can fill: numbers that are equal over the run, and names for the rocpd views. Computed
// for one trace at a time; what has to last over the run (hosts, communicators) is kept here.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/trace.h"
#include "store/sqlite/run_names.h"

namespace lockstep::store::sqlite {

class DerivedColumns {
 public:
  // `names` has just seen the trace.
  void compute(const model::Trace& trace, RunNames& names);
  // Processes whose device nobody could name: each was given a number of its own from kUnknownGpu on.
  uint64_t unknown_gpus() const { return static_cast<uint64_t>(next_unknown_gpu_ - kUnknownGpu); }
  static constexpr int32_t kUnknownGpu = 100000;

  // By row of the trace's tables.
  std::vector<int32_t> process_node;
  std::vector<uint32_t> comm_run;
  std::vector<uint64_t> comm_collectives, comm_p2ps;
  std::vector<uint32_t> call_name, mark_label;
  std::vector<int32_t> op_gpu;
  std::vector<uint32_t> op_name;
  std::vector<int64_t> op_host_end;
  std::vector<uint64_t> op_torch_id;
  std::vector<uint32_t> launch_name;
  std::vector<int32_t> kernel_gpu;

 private:
  void compute_processes(const model::Trace& trace);
  void compute_comms(const model::Trace& trace);
  void compute_ops(const model::Trace& trace, const RunNames& names);
  void compute_launches(const model::Trace& trace, RunNames& names);
  void compute_kernels(const model::Trace& trace);
  // Of what names no device itself.
  int32_t process_gpu();

  std::map<std::tuple<std::string, std::string, std::string>, int32_t>
      nodes_;                                                    // by boot id, name, NCCL_HOSTID
  std::map<std::tuple<uint64_t, int32_t>, uint32_t> run_comms_;  // by comm id and size
  uint32_t next_run_comm_ = 0;
  int32_t next_unknown_gpu_ = kUnknownGpu;
  int32_t process_gpu_ = -1;  // of the trace at hand; -1 not known and not yet made up
};

}  // namespace lockstep::store::sqlite
