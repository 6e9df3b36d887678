// SPDX-License-Identifier: Apache-2.0
// The figures of `summary` that need all ranks at once: bandwidth of what moved once everybody was there,
// waiting and moving, who was late, steps, and what went over the network.
//
// Waiting: from a rank's arrival at an operation to the last arrival. Moving: from there to its own end. Both
// of the operations that all members have; moving of those with GPU times alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/summary/summary.h"
#include "model/job.h"

namespace lockstep::analysis::summary {

struct RateFigures {  // see analysis/bandwidth/rates.h
  std::string func, comm, algo, proto;
  uint64_t comm_id = 0;
  int64_t ranks = 0, hosts = 0;
  uint64_t size_from = 0, size_to = 0, ops = 0, uncertain = 0;
  double algbw = 0, busbw = 0, busbw_low = 0, busbw_high = 0;  // GB/s: median and quartiles over operations
  double of_best = 0;  // busbw against the run's best of this function, 0..1
  double ceiling = 0;  // GB/s of the GPUs' links, nominal; 0 unknown
  std::string link;    // of the ceiling
  double error = 0;    // relative half-width that the clocks leave
};
struct FitFigures {  // time = alpha + S / beta, with 95 % confidence
  std::string func, comm;
  uint64_t comm_id = 0;
  uint32_t sizes = 0;
  double alpha_ns = 0, alpha_error_ns = 0, beta = 0, beta_low = 0,
         beta_high = 0;  // beta: GB/s; high 0: unbounded
};
// Sums over operations; quantiles are those of a histogram.
struct WaitFigures {  // of a communicator, or of a rank
  std::string comm, host;
  uint64_t comm_id = 0;
  int64_t rank = -1, pid = -1;
  uint64_t ops = 0, timed = 0;
  double waiting_ns = 0, moving_ns = 0, blamed_ns = 0;
  double late_p50_ns = 0, late_p99_ns = 0;  // behind the median arrival
};
// From one rank to another, over all channels. Waits are sums over transfers, which run side by side.
struct LinkFigures {  // see analysis/network/links.h
  std::string comm;
  uint64_t comm_id = 0;
  int64_t source = -1, target = -1;
  uint64_t steps = 0, bytes = 0;
  double gpu_wait_ns = 0, peer_wait_ns = 0, send_wait_ns = 0, receive_wait_ns = 0, flush_wait_ns = 0;
  double rate = 0;                                // bytes/s; 0 unknown
  double sending_p50_ns = 0, sending_p99_ns = 0;  // of one transfer; 0 unknown
};
// Steps as analysis/straggler/lateness/steps.h finds them, of one process that has real ones.
struct StepFigures {
  std::string source;       // "marks", "period" or "" where nothing shows
  uint32_t period_ops = 0;  // operations of one rank in a step
  Durations length;
  // Per rank and step: communication was on the GPU. Not more than that is exposed.
  Durations exposed_at_most;
  // Per rank and step, where all kernels are known: communication was on the GPU, and no computation beside
  // it.
  Durations exposed;
};
struct OverlapFigures {  // of a rank; see analysis/overlap/overlap.h
  std::string host;
  int64_t rank = -1, pid = -1;
  uint64_t steps = 0;  // 0: it has none, all of its time is one
  bool whole = false;
  double length_ns = 0, computing_ns = 0, hidden_ns = 0, exposed_ns = 0, copying_ns = 0, idle_ns = 0;
};
// Everything that needs all ranks; empty lists where the job has nothing of it.
struct AcrossFigures {
  std::vector<RateFigures> rates;  // the most time moving first
  std::vector<FitFigures> fits;
  std::vector<WaitFigures> comms, ranks;
  std::vector<LinkFigures> links;
  StepFigures steps;
  std::vector<OverlapFigures> overlap;
  uint64_t matched = 0, untimed = 0;  // operations of all members; of those, without GPU times
  bool is_amd = false;                // any GPU is AMD's
};

// The job is matched and its clocks are aligned.
StepFigures step_figures(const model::Job& job);
AcrossFigures across(const model::Job& job);

// "1 KiB+": the sizes that a rate is of.
std::string size_range(uint64_t size_from);

}  // namespace lockstep::analysis::summary
