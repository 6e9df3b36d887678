// SPDX-License-Identifier: Apache-2.0
// A made-up run for tests and benchmarks: the same numbers every time, every table filled, every column given
// a value that differs from its default. Ranks call all-reduces on a group of all, and a send or receive now
// and then.
#pragma once
#include <cstdint>
#include <string>

#include "model/trace_source.h"

namespace lockstep::model::testing {

struct SyntheticOptions {
  uint32_t ranks = 4;
  uint32_t ranks_per_host = 2;
  uint32_t ops = 20;      // all-reduces of each rank
  bool network = true;    // proxy ops, four steps each, and what is below them
  bool gpu_times = true;  // else the host saw only the enqueueing, and no kernels
  bool gpu_known = true;  // else no device number
  std::string comm_name = "default_pg:0";
  bool host_counters = false;  // of two hosts: a port's bytes and errors, a GPU's clock, and one never drawn
};

class SyntheticRun : public TraceSource {
 public:
  explicit SyntheticRun(SyntheticOptions options) : options_(std::move(options)) {}
  size_t processes() const override { return options_.ranks; }
  Result<void> load(size_t i, Trace& trace) override;
  void run_losses(Trace& trace) override;
  Result<void> host_counters(const HostCounterVisitor& visit) override;
  std::string name() const override { return "synthetic"; }

  static constexpr int64_t kStart = 1'760'000'000'000'000'000;  // ns since the epoch
  static constexpr int64_t kOpPeriod = 1'000'000;

 private:
  void add_process(int32_t rank, Trace& trace) const;
  void add_op(int32_t rank, uint32_t number, Trace& trace) const;
  void add_kernels(int32_t rank, uint32_t op, Trace& trace) const;
  void add_send_or_recv(int32_t rank, uint32_t number, Trace& trace) const;
  void add_network(int32_t rank, uint32_t task, int64_t start, Trace& trace) const;
  SyntheticOptions options_;
};

}  // namespace lockstep::model::testing
