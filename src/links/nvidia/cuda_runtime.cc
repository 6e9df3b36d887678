// SPDX-License-Identifier: Apache-2.0
// Transfers are queued behind a gate: each stream waits for a word in pinned host memory, all copies and both
// events stand behind it, and one store of the host lets all of them start. No multiprocessor spins, and what
// queueing costs is not in the times.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "links/nvidia/cuda_abi.h"
#include "links/shared_library.h"
#include "links/traffic/gpu_runtime.h"

namespace lockstep::links {
namespace nvidia {
namespace {
using namespace cuda;
using Seconds = std::chrono::duration<double>;

constexpr double kDeadlineSeconds = 20;  // of a batch of transfers; a stuck link is reported, not waited for
// Enough that the launch of the kernel does not show in the mean, and short enough for many pairs.
constexpr int kChaseLoads = 4096;
constexpr size_t kChaseBytes = size_t{8} << 20;
// As many blocks as an H100 has multiprocessors.
constexpr unsigned kCopyBlocks = 132, kCopyThreads = 512;

// Two kernels as text that the driver compiles: copy 16 bytes a thread and step; follow a chain of offsets.
constexpr char kKernels[] = R"(.version 6.0
.target sm_60
.address_size 64
.visible .entry lockstep_copy(.param .u64 to, .param .u64 from, .param .u64 items)
{
  .reg .pred %done;
  .reg .b32 %a<4>, %t<4>;
  .reg .b64 %to, %from, %items, %at, %step, %offset, %source, %target;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %items, [items];
  mov.u32 %t0, %ctaid.x;
  mov.u32 %t1, %ntid.x;
  mov.u32 %t2, %tid.x;
  mov.u32 %t3, %nctaid.x;
  mul.wide.u32 %at, %t0, %t1;
  cvt.u64.u32 %offset, %t2;
  add.u64 %at, %at, %offset;
  mul.wide.u32 %step, %t3, %t1;
again:
  setp.ge.u64 %done, %at, %items;
  @%done bra end;
  shl.b64 %offset, %at, 4;
  add.u64 %source, %from, %offset;
  add.u64 %target, %to, %offset;
  ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%source];
  st.global.v4.u32 [%target], {%a0, %a1, %a2, %a3};
  add.u64 %at, %at, %step;
  bra again;
end:
  ret;
}
.visible .entry lockstep_chase(.param .u64 chain, .param .u64 out, .param .u32 loads)
{
  .reg .pred %done;
  .reg .b32 %loads, %count;
  .reg .b64 %chain, %out, %at, %address;
  ld.param.u64 %chain, [chain];
  ld.param.u64 %out, [out];
  ld.param.u32 %loads, [loads];
  mov.u64 %at, 0;
  mov.u32 %count, 0;
again:
  setp.ge.u32 %done, %count, %loads;
  @%done bra end;
  add.u64 %address, %chain, %at;
  ld.volatile.global.u64 %at, [%address];
  add.u32 %count, %count, 1;
  bra again;
end:
  st.global.u64 [%out], %at;
  ret;
}
)";

struct Gpu {
  Device device = 0;
  Context context = nullptr;
  std::string pci;
  Stream stream = nullptr;
  Event start = nullptr, end = nullptr;
  DevicePointer out = 0, in = 0;  // what it sends from, what it is sent into
  DevicePointer chain = 0;        // what loads follow; 0 until it is needed
  Function copy = nullptr, chase = nullptr;
};

// Memory on one NUMA node, or wherever the host puts it.
class HostMemory {
 public:
  static lockstep::Result<HostMemory> on(int node, size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Error{ErrorCode::kIo, "no memory for measuring", ""};
    HostMemory host;
    host.memory_ = memory;
    host.bytes_ = bytes;
    if (node >= 0 && node < 64) {
      constexpr int kBind = 2;
      // mbind takes a mask, of which one word is given: hence nodes below 64.
      const unsigned long nodes = 1ul << node;
      // A node that cannot be had is no reason to measure nothing.
      (void)syscall(SYS_mbind, memory, bytes, kBind, &nodes, 64ul, 0u);
    }
    // Pages come into being where they are first touched: before this there is nothing to measure.
    std::memset(memory, 1, bytes);
    return host;
  }
  HostMemory(HostMemory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  HostMemory& operator=(HostMemory&&) = delete;
  ~HostMemory() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  void leave() { memory_ = nullptr; }  // to the end of the process
  void* data() const { return memory_; }
  size_t bytes() const { return bytes_; }

 private:
  HostMemory() = default;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

class CudaRuntime final : public GpuRuntime {
 public:
  CudaRuntime(SharedLibrary library, size_t bytes) : library_(library), bytes_(bytes) {}
  ~CudaRuntime() override {
    if (is_stuck_) {  // what still runs may use the memory: the process' end frees it
      for (auto& [node, memory] : host_) memory.leave();
      if (gate_memory_) gate_memory_->leave();
      return;
    }
    for (Gpu& gpu : gpus_) {
      if (gpu.context == nullptr) continue;
      call("cuCtxSetCurrent", gpu.context);
      for (const DevicePointer memory : {gpu.out, gpu.in, gpu.chain})
        if (memory != 0) call("cuMemFree_v2", memory);
      for (Event event : {gpu.start, gpu.end})
        if (event != nullptr) call("cuEventDestroy_v2", event);
      if (gpu.stream != nullptr) call("cuStreamDestroy_v2", gpu.stream);
    }
    for (const auto& [node, memory] : host_) call("cuMemHostUnregister", memory.data());
    if (gate_ != nullptr) call("cuMemHostUnregister", static_cast<void*>(gate_memory_->data()));
    for (const Gpu& gpu : gpus_) call("cuDevicePrimaryCtxRelease_v2", gpu.device);
  }

  lockstep::Result<void> open() {
    LOCKSTEP_TRY(check("cuInit", 0u));
    int count = 0;
    LOCKSTEP_TRY(check("cuDeviceGetCount", &count));
    // All of them at the start: peer access and rounds need every context at once.
    for (int i = 0; i < std::min(count, 64); ++i) {
      Gpu& gpu = gpus_.emplace_back();
      LOCKSTEP_TRY(check("cuDeviceGet", &gpu.device, i));
      char pci[32] = {};
      LOCKSTEP_TRY(
          check("cuDeviceGetPCIBusId", static_cast<char*>(pci), static_cast<int>(sizeof pci), gpu.device));
      gpu.pci = pci;
      // As /sys writes it: lower case, and a domain of four digits unless it needs eight.
      for (char& c : gpu.pci) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (gpu.pci.size() == 16 && gpu.pci.starts_with("0000")) gpu.pci.erase(0, 4);
      // The primary context: it may exist already, and a second one would cost memory on every GPU.
      LOCKSTEP_TRY(check("cuDevicePrimaryCtxRetain", &gpu.context, gpu.device));
      LOCKSTEP_TRY(check("cuCtxSetCurrent", gpu.context));
      // Not ordered with the default stream, on which other libraries of this process may work.
      LOCKSTEP_TRY(check("cuStreamCreate", &gpu.stream, kStreamNonBlocking));
      LOCKSTEP_TRY(check("cuEventCreate", &gpu.start, kEventDefault));
      LOCKSTEP_TRY(check("cuEventCreate", &gpu.end, kEventDefault));
      LOCKSTEP_TRY(check("cuMemAlloc_v2", &gpu.out, bytes_));
      LOCKSTEP_TRY(check("cuMemAlloc_v2", &gpu.in, bytes_));
      // Without kernels the copy engines are left.
      Module module = nullptr;
      if (call("cuModuleLoadData", &module, static_cast<const void*>(kKernels)) != kSuccess ||
          call("cuModuleGetFunction", &gpu.copy, module, "lockstep_copy") != kSuccess ||
          call("cuModuleGetFunction", &gpu.chase, module, "lockstep_chase") != kSuccess)
        gpu.copy = gpu.chase = nullptr;
    }
    if (gpus_.empty()) return {};
    LOCKSTEP_ASSIGN(HostMemory memory, HostMemory::on(-1, static_cast<size_t>(sysconf(_SC_PAGESIZE))));
    gate_memory_ = std::make_unique<HostMemory>(std::move(memory));
    LOCKSTEP_TRY(check("cuMemHostRegister_v2", gate_memory_->data(), gate_memory_->bytes(),
                       kHostRegisterPortableMapped));
    gate_ = static_cast<std::atomic<uint32_t>*>(gate_memory_->data());
    gate_->store(0);
    return {};
  }

  int count() const override { return static_cast<int>(gpus_.size()); }
  const std::string& pci(int gpu) const override { return gpus_[static_cast<size_t>(gpu)].pci; }
  bool has_kernels() const override { return !gpus_.empty() && gpus_[0].copy != nullptr; }

  lockstep::Result<bool> reaches(int by, int other) override {
    int can = 0;
    LOCKSTEP_TRY(check("cuDeviceCanAccessPeer", &can, at(by).device, at(other).device));
    if (can == 0) return false;
    LOCKSTEP_TRY(check("cuCtxSetCurrent", at(by).context));
    const cuda::Result result = call("cuCtxEnablePeerAccess", at(other).context, 0u);
    // Asked for twice it fails with a word of its own: it is on, which is what counts.
    if (result != kSuccess && result != kPeerAccessAlreadyEnabled)
      return failed("cuCtxEnablePeerAccess", result);
    return true;
  }

  lockstep::Result<std::vector<double>> time(std::span<const Transfer> transfers) override {
    // A stream is in order: whatever is queued behind what is stuck would never begin.
    if (is_stuck_) return Error{ErrorCode::kIo, "an earlier transfer never finished", ""};
    // A new value for each batch: the gate opens for all that wait for it or for a lower one, and never
    // closes again.
    const uint32_t open = ++gate_value_;
    std::set<int> busy;
    for (const Transfer& transfer : transfers) {
      // One stream and one pair of events a GPU, so a second transfer would overwrite the times of the first.
      auto queued = busy.insert(transfer.by).second ? queue(transfer, open)
                                                    : usage_error("a GPU carries out one transfer at a time");
      if (queued) continue;
      gate_->store(open, std::memory_order_release);  // what is queued must not wait for ever
      return queued.error();
    }
    gate_->store(open, std::memory_order_release);
    std::vector<double> seconds;
    for (const Transfer& transfer : transfers) {
      LOCKSTEP_ASSIGN(const double time, finish(at(transfer.by)));
      seconds.push_back(time);
    }
    return seconds;
  }

  lockstep::Result<double> load_latency(int by, int other) override {
    if (is_stuck_) return Error{ErrorCode::kIo, "an earlier transfer never finished", ""};
    LOCKSTEP_TRY(chain(other));
    Gpu& gpu = at(by);
    LOCKSTEP_TRY(check("cuCtxSetCurrent", gpu.context));
    DevicePointer links = at(other).chain, out = gpu.out;
    int loads = kChaseLoads;
    void* arguments[] = {&links, &out, &loads};
    LOCKSTEP_TRY(check("cuEventRecord", gpu.start, gpu.stream));
    LOCKSTEP_TRY(check("cuLaunchKernel", gpu.chase, 1u, 1u, 1u, 1u, 1u, 1u, 0u, gpu.stream,
                       static_cast<void**>(arguments), static_cast<void**>(nullptr)));
    LOCKSTEP_TRY(check("cuEventRecord", gpu.end, gpu.stream));
    LOCKSTEP_ASSIGN(const double seconds, finish(gpu));
    return seconds * 1e9 / kChaseLoads;
  }

 private:
  Gpu& at(int gpu) { return gpus_[static_cast<size_t>(gpu)]; }

  template <class... Arguments>
  cuda::Result call(const char* name, Arguments... arguments) const {
    // Arguments must have the exact types of the driver's function: no header checks them.
    const auto function = library_.function<cuda::Result (*)(Arguments...)>(name);
    return function == nullptr ? -1 : function(arguments...);
  }
  Error failed(const char* name, cuda::Result result) const {
    const char* text = nullptr;
    if (result == -1)
      return {ErrorCode::kUnsupported, "the driver has no " + std::string(name) + "; update it", ""};
    call("cuGetErrorName", result, &text);
    return {ErrorCode::kIo,
            std::string(name) + " fails: " + (text == nullptr ? std::to_string(result) : text), ""};
  }
  template <class... Arguments>
  lockstep::Result<void> check(const char* name, Arguments... arguments) const {
    const cuda::Result result = call(name, arguments...);
    if (result != kSuccess) return failed(name, result);
    return {};
  }

  lockstep::Result<void*> host_memory(int node) {
    auto found = host_.find(node);
    if (found == host_.end()) {
      LOCKSTEP_ASSIGN(HostMemory memory, HostMemory::on(node, bytes_));
      LOCKSTEP_TRY(check("cuMemHostRegister_v2", memory.data(), memory.bytes(), kHostRegisterPortableMapped));
      found = host_.emplace(node, std::move(memory)).first;
    }
    return found->second.data();
  }

  lockstep::Result<void> queue(const Transfer& transfer, uint32_t open) {
    Gpu& gpu = at(transfer.by);
    Stream const stream = gpu.stream;
    LOCKSTEP_TRY(check("cuCtxSetCurrent", gpu.context));
    DevicePointer gate = 0;
    LOCKSTEP_TRY(check("cuMemHostGetDevicePointer_v2", &gate, static_cast<void*>(gate_), 0u));
    void *from_host = nullptr, *to_host = nullptr;
    if (transfer.from.gpu < 0) {
      LOCKSTEP_ASSIGN(from_host, host_memory(transfer.from.node));
    }
    if (transfer.to.gpu < 0) {
      LOCKSTEP_ASSIGN(to_host, host_memory(transfer.to.node));
    }
    LOCKSTEP_TRY(check("cuStreamWaitValue32_v2", stream, gate, open, kWaitAtLeast));
    // Behind the gate: the time begins when the copies may, and not when they were queued.
    LOCKSTEP_TRY(check("cuEventRecord", gpu.start, stream));
    for (int i = 0; i < transfer.repeats; ++i) {
      if (from_host != nullptr)
        LOCKSTEP_TRY(check("cuMemcpyHtoDAsync_v2", at(transfer.to.gpu).in,
                           static_cast<const void*>(from_host), transfer.bytes, stream));
      else if (to_host != nullptr)
        LOCKSTEP_TRY(
            check("cuMemcpyDtoHAsync_v2", to_host, at(transfer.from.gpu).out, transfer.bytes, stream));
      else if (transfer.engine == Engine::kCores)
        LOCKSTEP_TRY(copy_by_cores(transfer, gpu, stream));
      else
        LOCKSTEP_TRY(check("cuMemcpyPeerAsync", at(transfer.to.gpu).in, at(transfer.to.gpu).context,
                           at(transfer.from.gpu).out, at(transfer.from.gpu).context, transfer.bytes, stream));
    }
    return check("cuEventRecord", gpu.end, stream);
  }

  lockstep::Result<void> copy_by_cores(const Transfer& transfer, const Gpu& gpu, Stream stream) {
    DevicePointer to = at(transfer.to.gpu).in, from = at(transfer.from.gpu).out;
    // Each thread moves 16 bytes a step, the widest load and store of the kernels' target (sm_60).
    uint64_t items = transfer.bytes / 16;
    void* arguments[] = {&to, &from, &items};
    return check("cuLaunchKernel", gpu.copy, kCopyBlocks, 1u, 1u, kCopyThreads, 1u, 1u, 0u, stream,
                 static_cast<void**>(arguments), static_cast<void**>(nullptr));
  }

  // Asks instead of waiting: a link that stands still must not take the program with it.
  lockstep::Result<double> finish(Gpu& gpu) {
    LOCKSTEP_TRY(check("cuCtxSetCurrent", gpu.context));
    const auto start = std::chrono::steady_clock::now();
    for (cuda::Result result; (result = call("cuEventQuery", gpu.end)) != kSuccess;) {
      if (result != kNotReady) return failed("cuEventQuery", result);
      if (Seconds(std::chrono::steady_clock::now() - start).count() > kDeadlineSeconds) {
        is_stuck_ = true;
        return Error{ErrorCode::kIo, "a transfer did not finish within 20 s", gpu.pci};
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    float milliseconds = 0;
    LOCKSTEP_TRY(check("cuEventElapsedTime", &milliseconds, gpu.start, gpu.end));
    return static_cast<double>(milliseconds) / 1e3;
  }

  // A circle of offsets in steps that no cache line or page of translation foresees.
  lockstep::Result<void> chain(int gpu) {
    if (at(gpu).chain != 0) return {};
    const size_t count = kChaseBytes / 128;
    std::vector<uint64_t> words(kChaseBytes / 8);
    size_t place = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t next = (place + 40'503) % count;  // coprime with count: every line once
      // A line of 128 bytes has one link, so that no load finds its line already fetched.
      words[place * 16] = next * 128;
      place = next;
    }
    LOCKSTEP_TRY(check("cuCtxSetCurrent", at(gpu).context));
    DevicePointer memory = 0;
    LOCKSTEP_TRY(check("cuMemAlloc_v2", &memory, kChaseBytes));
    auto copied = check("cuMemcpyHtoD_v2", memory, static_cast<const void*>(words.data()), kChaseBytes);
    // Loads would follow whatever lies there, out of this memory.
    if (copied)
      at(gpu).chain = memory;
    else
      call("cuMemFree_v2", memory);
    return copied;
  }

  SharedLibrary library_;
  const size_t bytes_;
  std::vector<Gpu> gpus_;
  std::map<int, HostMemory> host_;  // by NUMA node
  std::unique_ptr<HostMemory> gate_memory_;
  std::atomic<uint32_t>* gate_ = nullptr;
  uint32_t gate_value_ = 0;
  bool is_stuck_ = false;
};

}  // namespace
}  // namespace nvidia

lockstep::Result<std::unique_ptr<GpuRuntime>> cuda_runtime(size_t bytes) {
  LOCKSTEP_ASSIGN(SharedLibrary library, SharedLibrary::load("LOCKSTEP_CUDA_DRIVER", "libcuda.so.1"));
  auto runtime = std::make_unique<nvidia::CudaRuntime>(library, bytes);
  LOCKSTEP_TRY(runtime->open());
  return std::unique_ptr<GpuRuntime>(std::move(runtime));
}

}  // namespace lockstep::links
