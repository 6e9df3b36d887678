// SPDX-License-Identifier: Apache-2.0
// NVTX's calls, each passed on to ranges.h. A copy of NVTX calls InitializeInjectionNvtx2 at its first call
// of all: it may come before CUDA, several times in a process, and from any thread.
#include <stdlib.h>

#include "capture/core/log/thread_log.h"
#include "capture/core/session/session.h"
#include "capture/cuda/injection.h"
#include "capture/cuda/nvtx_abi.h"
#include "capture/cuda/ranges.h"
#include "format/cuda_setting.h"

namespace lockstep::capture::cuda {
namespace {

// A range's name for as long as the call lasts.
class Message {
 public:
  explicit Message(const char* text) : name_(range_name_of(text)) {}
  explicit Message(const wchar_t* text) : name_(range_name_of(text, wide_)) {}
  explicit Message(const nvtx::Attributes* attributes) : name_(name_of(attributes)) {}
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  RangeName name() const { return name_; }

 private:
  RangeName name_of(const nvtx::Attributes* attributes) {
    // The program's compiler made it: no field is read that its own size does not cover.
    if (attributes == nullptr || attributes->bytes < sizeof *attributes) {
      if (ThreadLog* log = ThreadLog::get()) log->lose(kLoss_unknown_type);
      return {};
    }
    switch (attributes->message_type) {
      case nvtx::kMessageAscii:
      case nvtx::kMessageRegistered:  // the handle is the text
        return range_name_of(static_cast<const char*>(attributes->message));
      case nvtx::kMessageWide:
        return range_name_of(static_cast<const wchar_t*>(attributes->message), wide_);
      default:
        return {};
    }
  }

  char wide_[256];
  RangeName name_;
};

template <class Text>
uint64_t start(const Text* text) {
  return start_range(0, Message(text).name());
}
template <class Text>
int push(const Text* text) {
  return push_range(0, Message(text).name());
}
int pop() { return pop_range(0); }
uint64_t start_in(Domain domain, const nvtx::Attributes* attributes) {
  return start_range(domain, Message(attributes).name());
}
void end_in(Domain, uint64_t range) { end_range(range); }
int push_in(Domain domain, const nvtx::Attributes* attributes) {
  return push_range(domain, Message(attributes).name());
}
template <class Text>
const char* register_text(Domain, const Text* text) {
  return register_range_text(Message(text).name());
}
template <class Text>
Domain create_domain(const Text* text) {
  return make_domain(Message(text).name());
}

// The functions of one module of a copy of NVTX.
class Functions {
 public:
  Functions(const nvtx::Callbacks& callbacks, nvtx::Module module) {
    if (callbacks.functions(module, &table_, &size_) == 0) table_ = nullptr;
  }
  explicit operator bool() const { return table_ != nullptr; }
  template <class Return, class... Arguments>
  void set(uint32_t number, Return (*function)(Arguments...)) const {
    // Each library brings the NVTX that it was built with, and older ones have shorter tables.
    if (number < size_ && table_[number] != nullptr)
      *table_[number] = reinterpret_cast<nvtx::Function>(function);
  }

 private:
  nvtx::FunctionTable table_ = nullptr;
  uint32_t size_ = 0;
};

bool attach(nvtx::GetExportTable get_table) {
  const auto* callbacks = static_cast<const nvtx::Callbacks*>(get_table(nvtx::kTableCallbacks));
  if (callbacks == nullptr || callbacks->bytes < sizeof *callbacks || callbacks->functions == nullptr)
    return false;
  const Functions core(*callbacks, nvtx::kModuleCore), core2(*callbacks, nvtx::kModuleCore2);
  if (!core) return false;
  core.set(nvtx::kRangeStartEx, start<nvtx::Attributes>);
  core.set(nvtx::kRangeStartA, start<char>);
  core.set(nvtx::kRangeStartW, start<wchar_t>);
  core.set(nvtx::kRangeEnd, end_range);
  core.set(nvtx::kRangePushEx, push<nvtx::Attributes>);
  core.set(nvtx::kRangePushA, push<char>);
  core.set(nvtx::kRangePushW, push<wchar_t>);
  core.set(nvtx::kRangePop, pop);
  core2.set(nvtx::kDomainRangeStartEx, start_in);
  core2.set(nvtx::kDomainRangeEnd, end_in);
  core2.set(nvtx::kDomainRangePushEx, push_in);
  core2.set(nvtx::kDomainRangePop, pop_range);
  core2.set(nvtx::kDomainRegisterStringA, register_text<char>);
  core2.set(nvtx::kDomainRegisterStringW, register_text<wchar_t>);
  core2.set(nvtx::kDomainCreateA, create_domain<char>);
  core2.set(nvtx::kDomainCreateW, create_domain<wchar_t>);
  return true;
}

}  // namespace
}  // namespace lockstep::capture::cuda

// 0: NVTX does without, and its calls return at once.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    lockstep::capture::cuda::nvtx::GetExportTable get_table) {
  namespace format = lockstep::format;
  namespace cuda = lockstep::capture::cuda;
  const bool wanted = format::asks_for(getenv(format::kCudaSetting), format::kCudaRanges);
  return wanted && get_table != nullptr && cuda::open_session() && cuda::attach(get_table) ? 1 : 0;
}
