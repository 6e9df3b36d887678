// SPDX-License-Identifier: Apache-2.0
// What a run holds, process by process, gathered while its traces go by: for `info` and for the reports of
// `trace` and `merge`. Memory grows with processes, communicators and losses, not with events.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/event_counts.h"
#include "model/trace_source.h"

namespace lockstep::input {

struct LossLine {
  int64_t process = -1;  // position in RunOverview::processes; -1: the whole run
  std::string stage, kind, detail;
  uint64_t count = 0;
};

struct CommMember {      // one process' view of a communicator
  uint64_t comm_id = 0;  // 0 unknown
  std::string name;
  int64_t process = 0;  // position in RunOverview::processes
  int32_t rank = -1, ranks = -1, nodes = -1, api_version = 0;
  bool ended = false;
};

// As the model has it: times are RunNs (model/trace.h), texts are unescaped, and what is empty, -1 or a time
// of 0 is not known.
struct ProcessOverview {
  std::string host, boot_id, launcher, job, argv, visible_devices, pci, uuid, gpu_model;
  std::string nccl_library, nccl_build_id, other_nccl;  // as the model has them
  std::string host_name;                                // what counts as its host: model/names/host_name.h
  std::string device_name;  // its PCI address, else "cuda:0" or "hip:0", as the process counts; empty unknown
  std::string chained_plugin;  // called with each event, beside ours; empty: none
  int64_t pid = 0, start_ns = 0, first_ns = 0, last_ns = 0, heartbeat_ns = 0;
  int32_t rank = -1, local_rank = -1, world = -1, node_rank = -1, device = -1, gpu = -1, host_device = -1,
          nccl_version = 0;
  std::string mode, retention, gpu_clock;
  struct ModeSince {
    std::string mode;
    int64_t since_ns = 0;
  };
  std::vector<ModeSince> modes;  // what was recorded when; empty unknown
  bool closed = false;
  int32_t anchor_width_ns = -1;  // the best reading of all host clocks at once; -1 none
  uint64_t ops = 0, ranges = 0;
  model::EventCounts events{};
  model::KernelCounts kernels;
  std::vector<std::pair<std::string, uint64_t>>
      counters;  // of the library that AMD's runtime loads, by label
  std::vector<CommMember> comms;
  std::vector<LossLine> losses;
};

struct RunOverview {
  std::vector<ProcessOverview> processes;
  std::vector<LossLine> losses;  // of the run, then of each process
  model::EventCounts events{};
  model::KernelCounts kernels;
  uint64_t ops = 0, ranges = 0;
  int64_t first_ns = 0, last_ns = 0;  // 0: no record
  uint64_t hosts = 0;
  // Members grouped by communicator, in order of first sight; members of unknown id are each their own.
  std::vector<std::vector<CommMember>> comms;

  // Something was unreadable or cut: the files say more than this.
  bool salvaged() const;
};

// A source with some more losses of the run, that watches what is loaded from it: each process in a place of
// its own, so that several may be loaded at once.
class ObservedSource : public model::TraceSource {
 public:
  ObservedSource(std::unique_ptr<model::TraceSource> source, std::vector<LossLine> more_losses);
  size_t processes() const override { return source_->processes(); }
  Result<void> load(size_t i, model::Trace& trace) override;
  bool gives_parts() const override { return source_->gives_parts(); }
  Result<void> load_part(size_t i, model::ProcessPart& part) override { return source_->load_part(i, part); }
  void run_losses(model::Trace& trace) override;
  // What cannot be read of them is a loss of the run, and no error.
  Result<void> host_counters(const HostCounterVisitor& visit) override;
  std::string name() const override { return source_->name(); }
  // Logs of link counters that lie beside the source's files, which does not know them. `keep` is held until
  // the end: it owns files that were packed.
  void set_link_logs(std::vector<std::string> logs, std::shared_ptr<void> keep) {
    link_logs_ = std::move(logs);
    keep_ = std::move(keep);
  }

  // Of all that has been loaded; a process loaded twice counts once. Processes that failed to load are run
  // losses.
  RunOverview overview();

 private:
  struct Slot {
    ProcessOverview process;
    std::string error;
    bool loaded = false;
  };
  std::unique_ptr<model::TraceSource> source_;
  std::vector<LossLine> more_losses_;
  std::vector<std::string> link_logs_;
  std::shared_ptr<void> keep_;
  std::vector<Slot> slots_;
};

// "default", "sample=1/100": what a process recorded, of its columns `mode` and `modes`.
std::string recorded_mode(uint8_t mode, const std::string& modes);
// "8 processes on 2 hosts"; without the hosts where none is known.
std::string processes_text(const RunOverview& run);
// What GPUs did, and how much of communication is known by operation; empty where no kernels are known.
std::string kernels_text(const RunOverview& run);

}  // namespace lockstep::input
