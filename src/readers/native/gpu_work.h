// SPDX-License-Identifier: Apache-2.0
// Work of AMD GPUs: what was submitted, joined with when it was done, becomes kernels as CUDA's are. What has
// no times is counted, by the reason; of what has not ended the loss names each queue's first.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "format/records.h"
#include "model/trace.h"
#include "readers/native/file/gpu_agents.h"
#include "readers/native/file/read_losses.h"
#include "readers/native/thread_rows.h"

namespace lockstep::readers::native {

// One file, one thread. The kernels and launches of a file get correlations of their own, from 1, since HSA
// has none.
class GpuWork {
 public:
  // All references outlive it.
  GpuWork(const GpuAgents& agents, ThreadRows& threads, uint32_t process, model::Trace& trace,
          ReadLosses& losses, const std::string& path)
      : agents_(agents), threads_(threads), process_(process), trace_(trace), losses_(losses), path_(path) {}

  void reserve(size_t pieces) { pieces_.reserve(pieces); }
  size_t size() const { return pieces_.size(); }
  // Its number. `thread`: row of threads; `tid`: that one's.
  uint32_t add(const format::DispatchRecord& record, uint32_t thread, uint32_t tid, int64_t launched_ns);
  uint32_t add(const format::QueuedCopyRecord& record, int64_t launched_ns);
  // Stamps are raw; they become host time by the agent's clock, or by HSA's system clock, as the record says.
  void set_times(uint32_t number, const format::GpuTimesRecord& record);

  // Host times in ns.
  struct Span {
    int64_t first_ns = 0, last_ns = 0;  // 0: no times
  };
  // Adds kernels and launches to the trace. When GPUs were seen to work.
  Span finish();

 private:
  // A kernel or copy between its submission and its times. Times are host ns; `queue` and `agent` are the
  // file's numbers, unchecked.
  struct Piece {
    int64_t launched_ns, start_ns, end_ns;  // end 0: not seen to end
    model::StringId name;
    uint32_t thread, tid, sequence, blocks;
    uint64_t bytes, device_comm;
    uint16_t queue, agent;
    model::KernelKind kind;
    bool is_untimed;  // or its times are of no use
    bool has_no_signal;
    bool has_problem;
  };
  // 0: the record's clock cannot be tied to the host's.
  int64_t host_ns(const Piece& piece, const format::GpuTimesRecord& record, uint64_t stamp) const;
  void add_kernel(const Piece& piece, uint32_t correlation);
  void add_launch(const Piece& piece, uint32_t correlation);
  // Counts what was launched and never ended.
  void lose_open();
  model::StringId copy_name(uint16_t from, uint16_t to);

  const GpuAgents& agents_;
  ThreadRows& threads_;
  const uint32_t process_;
  model::Trace& trace_;
  ReadLosses& losses_;
  const std::string path_;
  std::vector<Piece> pieces_;
  uint64_t unnamed_ = 0;
};

}  // namespace lockstep::readers::native
