// SPDX-License-Identifier: Apache-2.0
// A run as its tapes tell it (sim/nccl_host/tape.h), at the recorded times to the nanosecond: what a replay
// into the capture library yields, without the delays of the machine that replays. Calls, tasks, launches,
// kernels and communicators; no proxy events.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "model/trace_source.h"
#include "nccl_host/program.h"

namespace lockstep::golden {

class TapeRun : public model::TraceSource {
 public:
  // A tape for each rank that is there. `gpu_times`: with what KernelCh events tell.
  static Result<std::unique_ptr<TapeRun>> open(const std::vector<std::string>& paths, bool gpu_times);

  size_t processes() const override { return programs_.size(); }
  // Assembled.
  Result<void> load(size_t i, model::Trace& trace) override;
  void run_losses(model::Trace&) override {}
  std::string name() const override { return "tapes"; }

 private:
  std::vector<sim::Program> programs_;
  bool gpu_times_ = true;
};

}  // namespace lockstep::golden
