// SPDX-License-Identifier: Apache-2.0
// Threads of NCCL itself (proxies, network cards) stand in its functions all the time, so only what a program
// can call counts as a call of NCCL.
#include "readers/stacks/native_stack.h"

#include <algorithm>

#include "base/ascii.h"

namespace lockstep::readers::stacks {
namespace {

constexpr size_t kNo = std::string_view::npos;

bool starts_with_one_of(std::string_view name, const auto& words) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return name.starts_with(word); });
}

bool is_call_of_nccl(std::string_view name) {
  constexpr std::string_view kCalls[] = {
      "ncclComm", "ncclGroup",  "ncclAll",     "ncclReduce",    "ncclBroadcast", "ncclBcast",   "ncclSend",
      "ncclRecv", "ncclGather", "ncclScatter", "ncclGetUnique", "ncclMemAlloc",  "ncclMemFree", "ncclRedOp"};
  if (name.starts_with('p')) name.remove_prefix(1);  // as profilers that wrap it call it
  return starts_with_one_of(name, kCalls);
}

bool is_call_of_gpu(std::string_view name) {
  // "cuInit", "cuMemAlloc": with a capital, as many words begin with "cu".
  const bool is_driver = name.size() > 2 && name.starts_with("cu") && name[2] >= 'A' && name[2] <= 'Z';
  return is_driver || name.starts_with("cuda") || name.starts_with("hip") || name.starts_with("hsa_");
}

}  // namespace

std::optional<NativeFrame> native_frame(std::string_view line) {
  NativeFrame frame;
  if (!take(line, "#") || !take_number(line, frame.number) || !line.starts_with(' ')) return std::nullopt;
  line = trimmed(line);
  if (line.starts_with("0x")) {
    const size_t in = line.find(" in ");
    if (in == kNo || line.find_first_not_of("0123456789abcdef", 2) != in) return std::nullopt;
    frame.has_address = true;
    line.remove_prefix(in + 4);
  }
  const size_t open = line.find(" (");
  if (open == kNo || open == 0 || line.substr(open + 2).starts_with('/')) return std::nullopt;
  std::string_view name = line.substr(0, open);
  name = name.substr(0, name.find('('));  // "commReclaim(ncclComm*)"
  const bool is_known = !name.empty() && name != "??";
  if (is_known && name.find(' ') != kNo && name.find('<') == kNo) return std::nullopt;  // prose
  if (is_known) frame.function = name;
  return frame;
}

std::optional<NativeHead> native_head(std::string_view line) {
  NativeHead head;
  if (!take(line, "Thread ") || !take_number(line, head.thread) || !take(line, " (")) return std::nullopt;
  const size_t at = line.find("LWP ");
  if (at == kNo && !line.starts_with("Thread 0x")) return std::nullopt;
  if (at != kNo) {
    line.remove_prefix(at + 4);
    // The kernel's number of a thread: of the main thread it is that of the process.
    if (!take_number(line, head.lwp)) head.lwp = -1;
  }
  return head;
}

void NativeStack::add(const NativeFrame& frame) {
  has_frames_ = true;
  const std::string_view name = frame.function;
  if (name.empty()) return;
  // Frames come innermost first: what is met last is the outermost, which the program called.
  if (innermost_.empty()) innermost_ = name;
  if (is_call_of_nccl(name)) {
    nccl_called_ = last_named_;
    nccl_ = name;
  } else if (is_call_of_gpu(name)) {
    gpu_called_ = last_named_;
    gpu_ = name;
  }
  last_named_ = name;
}

std::string_view NativeStack::place() const {
  if (!nccl_.empty()) return nccl_;
  return gpu_.empty() ? innermost_ : gpu_;
}

std::string_view NativeStack::called() const {
  if (!nccl_.empty()) return nccl_called_;
  return gpu_.empty() ? std::string_view() : gpu_called_;
}

}  // namespace lockstep::readers::stacks
