// SPDX-License-Identifier: Apache-2.0
// What the progress threads of one process report in deep mode: one log per communicator, with the kernel's
// time on each channel and, between hosts, the proxy operations and their steps. Used by ProcessWriter.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "job/job.h"
#include "job/links.h"
#include "job/timeline.h"
#include "readers/native/file_builder.h"

namespace lockstep::sim::job {

inline constexpr uint8_t kChannels = 2;  // of a collective

class ProgressWriter {
 public:
  struct Op {
    uint32_t row;  // of the timeline
    int step;
    const Unit* unit;
    const uint64_t* handles;  // of the unit's tasks
  };
  // Nothing is seen after `end_ns`.
  ProgressWriter(const Job& job, const Links& links, const RankTimeline& timeline, int rank, int64_t end_ns);
  void write(readers::native::FileBuilder& file, std::span<const Op> ops);

 private:
  using Log = readers::native::FileBuilder::Log;
  struct Way {  // of data over the network: one proxy operation
    int peer = -1;
    bool sends = false;
    uint64_t bytes = 0;
    uint64_t parent = 0;
    int64_t other_ready = kNever;  // the receiver had launched it, or the sender entered
    double slowness = 1;           // of its link, against the slowest of the operation
  };
  struct Step {
    int number = 0;
    bool sends = false;
    int64_t start = 0, wait1 = kNever, wait2 = kNever, wait3 = kNever, end = kNever;
    uint16_t peer_waits = 0;
    bool posted = true;
    uint64_t parent = 0;
    uint32_t bytes = 0;
  };

  void write_op(Log& log, const Op& op, uint32_t comm);
  void write_kernels(Log& log, const Op& op, uint32_t comm);
  std::vector<Way> ways(const Op& op) const;
  void write_proxy_op(Log& log, const Op& op, const Way& way, uint32_t comm, std::vector<Step>* all);
  std::vector<Step> steps(const Op& op, const Way& way, int count, const HaltedOp* halted, int me) const;
  Step done_step(const Op& op, const Way& way, int number, int count) const;
  Step first_step(const Op& op, const Way& way) const;
  Step posted_step(const Way& way, int number) const;
  Step stuck_step(const Op& op, const Way& way, int number, const HaltedOp& halted, int me) const;
  void write_step(Log& log, const Step& step);
  void write_net_event(Log& log, uint64_t step, const Step& what);
  const HaltedOp* halted(const Op& op, uint64_t index) const;
  uint32_t after(uint64_t from, int64_t until) const;
  void late(Log& log, uint64_t target, uint64_t from, int64_t until, uint16_t state, uint64_t value);

  const Job& job_;
  const Links& links_;
  const RankTimeline& timeline_;
  const int rank_;
  const int64_t end_;
  const HostClock& clock_;
  const GpuClock& gpu_;
  uint32_t process_tag_ = 0;
  int32_t pid_ = 0;
  // Of the operation at hand:
  uint64_t collective_ = 0;  // its index on its communicator
  int64_t posted_ = kNever;  // the progress thread took it up: the one before it had ended; kNever not yet
};

}  // namespace lockstep::sim::job
