// SPDX-License-Identifier: Apache-2.0
// Which kernels communicate is known by their names, as a profiler's record has nothing else to know it by.
// NCCL's own say what they do; those of other libraries are listed by parts of their names. A kernel that is
// missed here counts as computation and would hide communication that nothing hid, so libraries that replace
// NCCL's collectives belong in the list.
#include "model/names/kernel_name.h"

#include <optional>

#include "base/ascii.h"

namespace lockstep::model {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Behind "ncclDevKernel_" and its older and newer forms: "AllReduce_Sum_f32_RING_LL(...)".
KernelWork function_of(std::string_view rest) {
  struct Name {
    std::string_view text;
    KernelWork work;
  };
  // The first that fits: "ReduceScatter" stands before "Reduce", with which it begins.
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
  // Symmetric memory: "multimem_all_reduce_kernel", "two_shot_all_reduce_kernel_inplace",
  // "one_shot_allreduce".
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

// What follows the part of NCCL's kernels' names that shows them to be NCCL's.
std::optional<std::string_view> behind_nccl(std::string_view name) {
  // "ncclKernel_" before 2.19 and "ncclDevKernel_" since, with "Sym" or "Symk" for kernels of symmetric
  // memory.
  take(name, "void ");
  if (!take(name, "nccl")) return std::nullopt;
  if (!take(name, "Symk")) take(name, "Sym");
  take(name, "Dev");
  if (!take(name, "Kernel")) return std::nullopt;
  take(name, "Debug");
  take(name, "_");
  return name;
}

bool is_rccl(std::string_view name) {
  take(name, "void ");
  return name.starts_with("rcclGenericKernel") || name.starts_with("rccl_main_kernel") ||
         name.starts_with("mscclKernel");
}

}  // namespace

KernelWork work_of_kernel(std::string_view name) {
  if (const auto rest = behind_nccl(name)) return function_of(*rest);
  std::string_view rest = name;
  take(rest, "void ");
  return is_rccl(name) || rest.starts_with("oneRankReduce") || is_custom(name) ? KernelWork::kAny
                                                                               : KernelWork::kNone;
}

bool is_nccl_kernel(std::string_view name) { return behind_nccl(name).has_value() || is_rccl(name); }

bool may_run(KernelWork work, std::string_view func) {
  switch (work) {
    case KernelWork::kNone:
      return false;
    case KernelWork::kAny:
      return true;
    case KernelWork::kAllReduce:
      // PyTorch's barrier is an all-reduce.
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

}  // namespace lockstep::model
