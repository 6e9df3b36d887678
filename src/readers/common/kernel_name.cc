// SPDX-License-Identifier: Apache-2.0
#include "readers/common/kernel_name.h"

namespace lockstep::readers::common {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Behind "ncclDevKernel_" and its older and newer forms: "AllReduce_Sum_f32_RING_LL(...)".
KernelWork function_of(std::string_view rest) {
  struct Name {
    std::string_view text;
    KernelWork work;
  };
  constexpr Name kNames[] = {
      {"AllReduce", KernelWork::kAllReduce}, {"AllGather", KernelWork::kAllGather},
      {"Broadcast", KernelWork::kBroadcast}, {"ReduceScatter", KernelWork::kReduceScatter},
      {"Reduce", KernelWork::kReduce},       {"SendRecv", KernelWork::kSendRecv}};
  for (const Name& name : kNames) {
    if (rest.starts_with(name.text)) return name.work;
  }
  return KernelWork::kAny;
}

// Work of other libraries that all ranks of a group take part in. Its time includes waiting for the others.
bool is_custom(std::string_view name) {
  constexpr std::string_view kParts[] = {
      "cross_device_reduce_1stage",
      "cross_device_reduce_2stage",
      "reduce_scatter_cross_device_store",
      "allreduce_fusion_kernel_",
      "quickreduce::allreduce_prototype_",
      "oneShotAllReduceKernel",
      "twoShotAllReduceKernel",
      "oneshotAllreduce",
      "twoshotAllreduce",
      "deep_ep::intranode::",
      "deep_ep::internode",
      "mscclpp",
      "allreduce_nvls",
      "allreduce_packet",
      "allreduce_allpair",
      "nvshmem",
  };
  for (const std::string_view part : kParts) {
    if (has(name, part)) return true;
  }
  // Symmetric memory: "multimem_all_reduce_kernel", "two_shot_all_reduce_kernel_inplace", "one_shot_allreduce".
  for (const std::string_view shot : {"multimem_", "one_shot_", "two_shot_"}) {
    const size_t at = name.find(shot);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = name.substr(at);
    for (const std::string_view what : {"all_reduce", "allreduce", "all_gather", "reduce_scatter"}) {
      if (has(rest, what)) return true;
    }
  }
  return false;
}

}  // namespace

KernelWork work_of_kernel(std::string_view name) {
  std::string_view rest = name;
  take(rest, "void ");
  if (take(rest, "nccl")) {
    if (!take(rest, "Symk")) take(rest, "Sym");
    take(rest, "Dev");
    if (take(rest, "Kernel")) {
      take(rest, "Debug");
      take(rest, "_");
      return function_of(rest);
    }
  }
  for (const std::string_view other : {"rcclGenericKernel", "mscclKernel", "oneRankReduce"}) {
    if (rest.starts_with(other)) return KernelWork::kAny;
  }
  return is_custom(name) ? KernelWork::kAny : KernelWork::kNone;
}

bool may_run(KernelWork work, std::string_view func) {
  switch (work) {
    case KernelWork::kNone:
      return false;
    case KernelWork::kAny:
      return true;
    case KernelWork::kAllReduce:
      return func == "AllReduce" || func == "Barrier";
    case KernelWork::kBroadcast:  // uneven gathers are made of them
      return func == "Broadcast" || func == "AllGatherV" || func == "AllGather";
    case KernelWork::kReduce:
      return func == "Reduce" || func == "ReduceScatter";
    case KernelWork::kAllGather:
      return func == "AllGather" || func == "AllGatherV" || func == "Broadcast";
    case KernelWork::kReduceScatter:
      return func == "ReduceScatter";
    case KernelWork::kSendRecv:
      return func == "Send" || func == "Recv" || func == "AlltoAll" || func == "Gather" || func == "Scatter";
  }
  return false;
}

}  // namespace lockstep::readers::common
