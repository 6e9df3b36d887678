// SPDX-License-Identifier: Apache-2.0
// What the kernels of a trace are by their names, each name looked at once.
#pragma once
#include <cstdint>
#include <vector>

#include "model/names/kernel_name.h"
#include "model/trace.h"

namespace lockstep::job::assemble {

// For one thread: names are looked at as they are asked for. Texts that the trace gets later are no kernels'
// here.
class KernelWorks {
 public:
  // `trace` outlives it.
  explicit KernelWorks(const model::Trace& trace) : trace_(trace), works_(trace.strings.size()) {}

  // One that NCCL launches for the operations it reports.
  bool is_nccl(uint32_t kernel) {
    return trace_.kernels.kind[kernel] == static_cast<uint8_t>(model::KernelKind::kCommunication) &&
           of(trace_.kernels.name[kernel]).is_nccl;
  }
  // One on symmetric memory, for which NCCL reports no launch.
  bool is_symmetric(uint32_t kernel) const {
    return trace_.strings[trace_.kernels.name[kernel]].starts_with("ncclSym");
  }
  // Whether an operation of this shape may have run in it.
  bool may_run(uint32_t kernel, uint32_t shape) {
    return shape < trace_.shapes.size() &&
           model::may_run(of(trace_.kernels.name[kernel]).work, trace_.strings[trace_.shapes.func[shape]]);
  }

 private:
  struct Name {
    bool is_known = false, is_nccl = false;
    model::KernelWork work = model::KernelWork::kNone;
  };
  const Name& of(model::StringId id) {
    if (id >= works_.size()) return unknown_;
    Name& name = works_[id];
    if (!name.is_known)
      name = {true, model::is_nccl_kernel(trace_.strings[id]), model::work_of_kernel(trace_.strings[id])};
    return name;
  }

  const model::Trace& trace_;
  std::vector<Name> works_;  // by StringId
  Name unknown_;
};

}  // namespace lockstep::job::assemble
