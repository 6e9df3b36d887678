// SPDX-License-Identifier: Apache-2.0
// What a kernel's name says. Of NCCL's, the function alone is used: reduction, protocol and often the
// algorithm in the name are those of a representative that was compiled, not of the operation.
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep::model {

// What an operation that the kernel may stand for does; a set, as sends and receives carry what is made of
// them.
enum class KernelWork : uint8_t {
  kNone,  // no communication
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kSendRecv,
  kAny,  // communication of some kind
};
KernelWork work_of_kernel(std::string_view name);
// One that NCCL or RCCL launches for the operations it reports.
bool is_nccl_kernel(std::string_view name);
// Whether an operation (`func` in NCCL's spelling) may have run in such a kernel.
bool may_run(KernelWork work, std::string_view func);

}  // namespace lockstep::model
