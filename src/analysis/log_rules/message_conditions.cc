// SPDX-License-Identifier: Apache-2.0
// Conditions of MESSAGE rows: whether a line of the row's kind has the cause that the row names. NCCL
// prints many causes with one text, and a number or a word in it says which. A condition looks at the line,
// and at others of the log only where they say that it did no harm or followed from something else. Most ask
// for level WARN, since NCCL also prints the same texts where it goes on in another way.
#include <algorithm>

#include "analysis/log_rules/rules.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_double;
using readers::nccl_log::to_int;

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool any_value_has(const Fact& fact, std::string_view part) {
  for (const std::string& value : fact.values) {
    if (has(value, part)) return true;
  }
  return false;
}

// 12 of "12" or of "IBV_WC_RETRY_EXC_ERR(12)"; a peer's name may stand before it. -1: none.
int64_t completion_status(const Fact& fact) {
  for (const std::string& value : fact.values) {
    const size_t open = value.ends_with(')') ? value.rfind('(') + 1 : 0;
    const std::string_view digits =
        std::string_view(value).substr(open, value.size() - open - (open != 0 ? 1 : 0));
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
      return to_int(digits);
  }
  return -1;
}

// What CUDA's error means, by its number, which stands first since 2.18, or by its words.
enum class CudaCause : uint8_t {
  kOther,
  kMemory,
  kNvls,
  kFabric,
  kMisfit,
  kCompat,
  kStart,
  kEnding,
  kDevice,
  kPeer,
  kProgram,
  kUnsupported,
  kMps,
  kHostMemory,
  kIpc,
  kHardware,
  kCapture
};
struct CudaError {
  CudaCause cause;
  int64_t number;
  std::string_view words;
};
constexpr CudaError kCudaErrors[] = {
    {CudaCause::kCapture, 900, "stream is capturing"},
    {CudaCause::kCapture, 901, "error during capture"},
    {CudaCause::kCapture, 902, "separate capture sequences"},
    {CudaCause::kCapture, 903, "capture was not initiated"},
    {CudaCause::kCapture, 904, "all forked streams"},
    {CudaCause::kCapture, 905, "uncaptured work"},
    {CudaCause::kCapture, 906, "a capturing blocking stream"},
    {CudaCause::kCapture, 907, "in a capturing stream"},
    {CudaCause::kCapture, 908, "thread-local capture sequence"},
    {CudaCause::kMemory, 2, "out of memory"},
    {CudaCause::kFabric, 800, "operation not permitted"},
    {CudaCause::kFabric, 802, "system not yet initialized"},
    {CudaCause::kMisfit, 35, "driver version is insufficient"},
    {CudaCause::kMisfit, 36, "not supported in the installed CUDA driver"},
    {CudaCause::kMisfit, 35, "too old (found version"},
    {CudaCause::kMisfit, 209, "no kernel image is available"},
    {CudaCause::kMisfit, 218, "PTX"},
    {CudaCause::kMisfit, 222, "unsupported toolchain"},
    {CudaCause::kMisfit, 500, "named symbol not found"},
    {CudaCause::kMisfit, 803, "unsupported display driver"},
    {CudaCause::kMisfit, 98, "invalid device function"},
    {CudaCause::kMisfit, 200, "device kernel image is invalid"},
    {CudaCause::kCompat, 804, "forward compatibility was attempted"},
    {CudaCause::kStart, 3, "initialization error"},
    {CudaCause::kStart, 3, "must use the 'spawn' start method"},
    {CudaCause::kEnding, 4, "driver shutting down"},
    {CudaCause::kDevice, 46, "busy or unavailable"},
    {CudaCause::kDevice, 100, "no CUDA-capable device"},
    {CudaCause::kDevice, 101, "invalid device ordinal"},
    {CudaCause::kPeer, 217, "peer access is not supported"},
    {CudaCause::kPeer, 705, "peer access has not been enabled"},
    {CudaCause::kProgram, 700, "illegal memory access"},
    {CudaCause::kProgram, 710, "device-side assert"},
    {CudaCause::kProgram, 715, "illegal instruction"},
    {CudaCause::kProgram, 716, "misaligned address"},
    {CudaCause::kProgram, 717, "not supported on global/shared"},
    {CudaCause::kProgram, 718, "invalid program counter"},
    {CudaCause::kProgram, 719, "unspecified launch failure"},
    {CudaCause::kUnsupported, 801, "operation not supported"},
    {CudaCause::kMps, 805, "MPS client failed"},
    {CudaCause::kMps, 806, "MPS server"},
    {CudaCause::kMps, 807, "MPS server"},
    {CudaCause::kHardware, 214, "uncorrectable ECC"},
    {CudaCause::kHardware, 714, "hardware stack error"},
    {CudaCause::kHardware, 220, "uncorrectable NVLink"},
    {CudaCause::kHardware, 226, "over nvlink or a hardware error"},
    {CudaCause::kMemory, 2, "hipErrorOutOfMemory"},
    {CudaCause::kDevice, 100, "hipErrorNoDevice"},
    {CudaCause::kDevice, 101, "hipErrorInvalidDevice"},
    {CudaCause::kMisfit, 209, "hipErrorNoBinaryForGpu"},
    {CudaCause::kPeer, 217, "hipErrorPeerAccessUnsupported"},
    {CudaCause::kProgram, 700, "hipErrorIllegalAddress"},
    {CudaCause::kProgram, 719, "hipErrorLaunchFailure"},
};
struct CudaPlace {
  CudaCause cause;
  std::string_view file;
};
constexpr CudaPlace kCudaPlaces[] = {{CudaCause::kNvls, "nvls.cc"},
                                     {CudaCause::kIpc, "transport/p2p.cc"},
                                     {CudaCause::kHostMemory, "transport/shm.cc"}};
CudaCause cuda_cause(const Fact& fact) {
  const std::string text = fact.value(0);
  const bool has_number = !text.empty() && text[0] >= '0' && text[0] <= '9';
  const int64_t number = has_number ? to_int(text.substr(0, text.find_first_not_of("0123456789"))) : -1;
  // A number, where there is one, decides alone: words may occur in several errors.
  for (const CudaError& error : kCudaErrors) {
    if (has_number ? number == error.number : has(text, error.words)) return error.cause;
  }
  // Else the source file says what the call was for.
  for (const CudaPlace& place : kCudaPlaces) {
    if (has(fact.first.text, place.file)) return place.cause;
  }
  return CudaCause::kOther;
}
// Of a call that gave back what a communicator had: NCCL says right behind it that this one failed.
bool is_of_teardown(const View& view, const Fact& fact) {
  constexpr uint64_t kLinesBetween = 4;
  const auto ends = view.facts(LineKind::kTeardownFailed, fact.process);
  return std::any_of(ends.begin(), ends.end(), [&](const Fact* end) {
    return end->first.file == fact.first.file && end->first.line > fact.first.line &&
           end->first.line - fact.first.line <= kLinesBetween;
  });
}
bool is_cuda(const View& view, const Fact& fact, CudaCause cause) {
  return fact.is_warning && cuda_cause(fact) == cause && !is_of_teardown(view, fact);
}
bool is_cuda_memory_error(const Fact& fact) { return cuda_cause(fact) == CudaCause::kMemory; }

// Events of a queue of requests, and not of the card.
bool is_refusal(const Fact& fact) {
  return any_value_has(fact, "access violation") || any_value_has(fact, "invalid request") ||
         any_value_has(fact, "work queue") || fact.value(1).starts_with("QP ") ||
         fact.value(1).starts_with("CQ ") || fact.value(1).starts_with("SRQ");
}
bool is_of_an_end(const Fact& fact) {
  return has(fact.first.text, "collective mismatch error") || has(fact.first.text, "incorrect receive info");
}

}  // namespace

bool any(const View&, const Fact&) { return true; }
bool warned(const View&, const Fact& fact) { return fact.is_warning; }
// XLA takes it back where a thread was only late.
bool never_went_on(const View& view, const Fact& fact) {
  const auto went = view.facts(LineKind::kRendezvousWent);
  return std::none_of(went.begin(), went.end(), [&](const Fact* on) {
    return on->first.file == fact.first.file && on->first.line > fact.first.line;
  });
}
// NCCL creates communicators only after processes have met.
bool before_any_communicator(const View& view, const Fact&) { return view.model().comms.empty(); }
bool out_of_reach(const View& view, const Fact& fact) {
  return warned(view, fact) && (any_value_has(fact, "timed out") || any_value_has(fact, "No route to host") ||
                                any_value_has(fact, "unreachable"));
}
bool closed(const View& view, const Fact& fact) { return warned(view, fact) && !out_of_reach(view, fact); }
bool port_error(const View&, const Fact& fact) { return any_value_has(fact, "port error"); }
// 18: IBV_EVENT_GID_CHANGE, which older releases did not know.
bool port_back(const View& view, const Fact& fact) {
  const std::string& text = fact.first.text;
  return warned(view, fact) &&
         (has(text, "port active") || has(text, "GID table changed") || has(text, "unknown event type (18)"));
}
// 3 is NVML_GPU_FABRIC_STATE_COMPLETED.
bool fabric_unfinished(const View&, const Fact& fact) { return fact.value(3) != "3"; }
bool out_of_memory(const View& view, const Fact& fact) {
  return warned(view, fact) && any_value_has(fact, "Cannot allocate memory");
}
bool other_verbs(const View& view, const Fact& fact) {
  return warned(view, fact) && !out_of_memory(view, fact);
}
bool cuda_out_of_memory(const View& view, const Fact& fact) {
  return warned(view, fact) && is_cuda_memory_error(fact);
}
bool cuda_nvls(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kNvls); }
bool cuda_fabric(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kFabric); }
bool cuda_misfit(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kMisfit); }
bool cuda_start(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kStart); }
bool cuda_ending(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kEnding); }
bool cuda_device(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kDevice); }
bool cuda_compat(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kCompat); }
bool cuda_peer(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kPeer); }
bool cuda_program(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kProgram); }
bool cuda_unsupported(const View& view, const Fact& fact) {
  return is_cuda(view, fact, CudaCause::kUnsupported);
}
bool cuda_capture(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kCapture); }
bool cuda_mps(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kMps); }
bool cuda_host_memory(const View& view, const Fact& fact) {
  return is_cuda(view, fact, CudaCause::kHostMemory);
}
bool cuda_ipc(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kIpc); }
bool cuda_teardown(const View& view, const Fact& fact) {
  return fact.is_warning && cuda_cause(fact) != CudaCause::kMemory && is_of_teardown(view, fact);
}
bool handle_failed(const View& view, const Fact& fact) {
  return warned(view, fact) && (has(fact.first.text, "IpcGet") || has(fact.first.text, "IpcOpen"));
}
bool gpu_failed(const View& view, const Fact& fact) {
  return warned(view, fact) && !handle_failed(view, fact);
}
bool cuda_hardware(const View& view, const Fact& fact) { return is_cuda(view, fact, CudaCause::kHardware); }
bool hip_error(const View& view, const Fact& fact) {
  return is_cuda(view, fact, CudaCause::kOther) && fact.value(1) == "HIP";
}
bool cuda_error(const View& view, const Fact& fact) {
  return is_cuda(view, fact, CudaCause::kOther) && !hip_error(view, fact);
}
// The step to RTR is the one that needs the peer's address; other errors than an argument's are of routes as
// well.
bool is_route(const Fact& fact) {
  const std::string& text = fact.first.text;
  const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  if (says("next state ")) return says("next state RTR");
  return says("unreachable") || says("No route to host") || says("timed out");
}
bool queue_pair_route(const View& view, const Fact& fact) { return warned(view, fact) && is_route(fact); }
bool queue_pair_refused(const View& view, const Fact& fact) { return warned(view, fact) && !is_route(fact); }
bool request_refused(const View& view, const Fact& fact) { return warned(view, fact) && is_refusal(fact); }
bool card_fatal(const View& view, const Fact& fact) { return warned(view, fact) && !is_refusal(fact); }
bool event_refused(const View& view, const Fact& fact) { return warned(view, fact) && is_refusal(fact); }
bool event_fatal(const View& view, const Fact& fact) {
  return warned(view, fact) && (any_value_has(fact, "catastrophic") || any_value_has(fact, "device fatal"));
}
bool ends_differ(const View& view, const Fact& fact) { return warned(view, fact) && is_of_an_end(fact); }
// Beside a transfer that failed they need not have: ranks that gave up are at other calls than those that
// wait.
std::optional<Hit> calls_mixed(const View& view) {
  // A flushed request follows from an earlier failure on its queue, and is none of its own.
  constexpr int64_t kFlushed = 5;
  Hit hit;
  for (const Fact* fact : view.facts(LineKind::kCallsDiffer)) {
    if (warned(view, *fact) && !is_of_an_end(*fact)) add(view, *fact, hit);
  }
  if (hit.evidence.empty()) return std::nullopt;
  const auto transfers = view.facts(LineKind::kCompletion);
  const bool has_failure = std::any_of(transfers.begin(), transfers.end(), [&](const Fact* fact) {
    return warned(view, *fact) && completion_status(*fact) != kFlushed;
  });
  if (has_failure) hit.severity = Severity::kWarning;
  return hit;
}
// RAS listens for clients beside the job, which goes on without.
bool port_of_ras(const View& view, const Fact& fact) {
  return warned(view, fact) && has(fact.first.text, "ras/client_support");
}
bool port_of_job(const View& view, const Fact& fact) {
  return warned(view, fact) && !port_of_ras(view, fact);
}
bool one_core(const View&, const Fact& fact) {
  const std::string cores = fact.value(1);
  return !cores.empty() && cores.find_first_not_of("0123456789") == std::string::npos && cores.size() <= 4;
}
bool is_on(const View&, const Fact& fact) { return fact.value(0) == "On"; }
// Without cards the plugins that NCCL brings along fail in every log; what is used instead is said elsewhere.
bool not_built_in(const View&, const Fact& fact) {
  return fact.value(0) != "IB" && fact.value(0) != "Socket";
}
bool pair_disabled(const View&, const Fact& fact) {
  return fact.value(0) == "Disabled" || fact.value(1) == "Disabled";
}

// "Fatal, Link 32 ..." and "Non-fatal, Link 32 ...".
bool switch_fatal(const View&, const Fact& fact) { return fact.value(2).starts_with("Fatal"); }
bool switch_warned(const View& view, const Fact& fact) { return !switch_fatal(view, fact); }

bool has_nvswitch(const View& view, const Fact& fact) {
  constexpr double kHopperGbps = 300;  // of all NVLinks of a GPU: older ones have no multicast
  for (const Fact* link : view.facts(LineKind::kNvLink, fact.process)) {
    if (link->value(1).starts_with("NVS/") && to_double(link->value(0)) >= kHopperGbps) return true;
  }
  return false;
}

bool slower_than_any_slot(const View&, const Fact& fact) {
  constexpr double kSlowestGbps = 3;  // less than any GPU or card is put behind
  return fact.value(1).starts_with("GPU/") && to_double(fact.value(0)) < kSlowestGbps;
}

bool small_roce_mtu(const View&, const Fact& fact) {
  // 3 is IBV_MTU_1024. A GID names a RoCE port, as InfiniBand's lines end in a LID.
  return fact.value(1) == "3" && fact.value(2).starts_with("GID");
}

// Statuses are libibverbs' ibv_wc_status: 1 local length, 4 local protection, 5 flushed, 9 a request that the
// receiver cannot take, 10 remote access, 12 no answer, 13 receiver not ready.
bool access_error(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 4;
}
bool remote_failure(const View&, const Fact& fact) {
  const std::string text = fact.value(0);
  return has(text, "remote process exited") || has(text, "ncclRemoteError") || has(text, "remote error");
}
bool asks_for_no_size(const View&, const Fact& fact) { return has(fact.first.text, "more than 1EB"); }
bool has_no_memory(const View& view, const Fact& fact) { return !asks_for_no_size(view, fact); }
bool own_failure(const View& view, const Fact& fact) { return !remote_failure(view, fact); }
// "(34/34)": the last.
bool retries_spent(const View&, const Fact& fact) {
  const size_t values = fact.values.size();
  return values >= 4 && fact.value(values - 3) == fact.value(values - 2) &&
         to_int(fact.value(values - 2)) > 0;
}
bool retries_exceeded(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 12;
}
bool flushed(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 5;
}
bool sizes_differ(const View& view, const Fact& fact) {
  const int64_t status = completion_status(fact);
  return warned(view, fact) && (status == 1 || status == 9);
}
bool peer_refused(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 10;
}
bool receiver_late(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 13;
}
bool other_error(const View& view, const Fact& fact) {
  // Every status that has no row of its own still has this one, so that none is silent.
  constexpr int64_t kWithRows[] = {1, 4, 5, 9, 10, 12, 13};
  const int64_t status = completion_status(fact);
  return warned(view, fact) &&
         std::find(std::begin(kWithRows), std::end(kWithRows), status) == std::end(kWithRows);
}

}  // namespace lockstep::analysis::log_rules
