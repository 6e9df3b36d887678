// SPDX-License-Identifier: Apache-2.0
// Process files as one source: files of one process (same boot, pid namespace, pid and start) become one
// process, processes are ordered by (rank, host, pid), and what only the whole run can tell is worked out at
// open: one clock offset per boot, device numbers that are distinct over all processes, and who is in which
// communicator.
#pragma once
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "model/torch/group_names.h"
#include "model/torch/torch_groups.h"
#include "model/trace_source.h"
#include "readers/native/process_loader.h"

namespace lockstep::readers::native {

// Opening reads the definitions of all files on several threads. After that `load` may run for different
// processes on several threads at once.
class Run : public model::TraceSource {
 public:
  // A file that cannot be read is a loss of the run; an error if none can.
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths);

  size_t processes() const override { return processes_.size(); }
  Result<void> load(size_t i, model::Trace& trace) override;
  void run_losses(model::Trace& trace) override;
  std::string name() const override { return name_; }
  // The files of process `i`.
  const std::vector<std::string>& paths(size_t i) const { return processes_[i].paths; }

 private:
  // One process, and the file of each of its capture libraries.
  struct ProcessFiles {
    std::vector<std::string> paths;
    format::FileHeader header;  // of the file that knows the rank, if any does
    size_t boot = 0;            // in boots_
  };
  class Opener;

  // Fixed once the run is open, except numbers of devices that nobody had named before.
  std::string name_;
  std::vector<ProcessFiles> processes_;
  std::vector<BootClock> boots_;
  DeviceNumbers devices_;
  model::RunMembers members_;
  model::GroupNames group_names_;
  std::vector<std::string> bad_files_;
};

}  // namespace lockstep::readers::native
