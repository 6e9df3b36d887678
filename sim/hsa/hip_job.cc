// SPDX-License-Identifier: Apache-2.0
// lockstep-hip-job CODE [LAUNCHES [REPLAYS]]: host C, a distribution's own HIP on host B. CODE is kernels.cl
// compiled. Does what programs do that launch kernels, REPLAYS times also by a graph, and prints one JSON
// object: events' times, and how many kernels it launched.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "sim/hsa/hip.h"

namespace {

using Handle = void*;
using lockstep::sim::Arguments;
using lockstep::sim::Hip;
using lockstep::sim::read_file;

struct Extent {
  unsigned x, y, z;
};

// What a compiler puts into a program around the code of its kernels.
struct Wrapper {
  unsigned magic, version;
  const void* bundle;
  void* unused;
};
std::vector<char> bundle_of(const std::vector<char>& code) {
  constexpr size_t kCodeAt = 4096;
  std::string head = "__CLANG_OFFLOAD_BUNDLE__";
  const auto add_number = [&](uint64_t number) {
    head.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add_number(2);
  for (const std::string target : {"host-x86_64-unknown-linux", "hipv4-amdgcn-amd-amdhsa--gfx900"}) {
    add_number(kCodeAt);
    add_number(target.starts_with("host") ? 0 : code.size());
    add_number(target.size());
    head += target;
  }
  std::vector<char> bundle(kCodeAt + code.size());
  std::memcpy(bundle.data(), head.data(), head.size());
  std::memcpy(bundle.data() + kCodeAt, code.data(), code.size());
  return bundle;
}

class Job {
 public:
  explicit Job(const char* code) {
    hip_.call("hipInit", 0u);
    hip_.call("hipSetDevice", 0);
    const std::vector<char> bytes = read_file(code);
    hip_.call("hipModuleLoadData", &module_, static_cast<const void*>(bytes.data()));
    hip_.call("hipModuleGetFunction", &compute_, module_, "plain_compute");
    hip_.call("hipModuleGetFunction", &reduce_, module_, "ncclDevKernel_Generic_1");
    hip_.call("hipStreamCreate", &stream_);
    hip_.call("hipEventCreate", &begin_);
    hip_.call("hipEventCreate", &end_);
  }

  void launch(Handle function, void* first) {
    lockstep::sim::launch(hip_, function, {first, 64}, 4, stream_);
    ++launched_;
  }
  // As RCCL launches: the packet itself bears the stop event.
  void launch_with_stop_event(Handle function, void* first, Handle start, Handle stop) {
    Arguments arguments{first, 64};
    size_t size = sizeof arguments;
    void* extra[] = {reinterpret_cast<void*>(1), &arguments, reinterpret_cast<void*>(2), &size,
                     reinterpret_cast<void*>(3)};
    hip_.call(
        "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
        function, 256u, 1u, 1u, 64u, 1u, 1u, size_t{0}, stream_, static_cast<void**>(nullptr),
        static_cast<void**>(extra), start, stop, 0u);
    ++launched_;
  }
  double elapsed_ms() {
    float ms = -1;
    hip_.call("hipEventSynchronize", end_);
    hip_.call("hipEventElapsedTime", &ms, begin_, end_);
    return ms;
  }

  double timed_by_events() {
    hip_.call("hipEventRecord", begin_, stream_);
    launch(compute_, at(1));
    hip_.call("hipEventRecord", end_, stream_);
    return elapsed_ms();
  }
  double timed_by_launch() {
    launch_with_stop_event(reduce_, at(0x1111000), begin_, end_);
    return elapsed_ms();
  }
  void run(int count) {
    for (int i = 0; i < count; ++i) launch(i % 4 == 3 ? reduce_ : compute_, at(0x1111000));
    synchronize();
  }
  // As a compiler makes of kernel<<<...>>>(...); of launches, HIP 5.2.3 captures these alone.
  void launch_compiled(const void* function, void* first) {
    unsigned long bytes = 64;
    void* arguments[] = {&first, &bytes};
    hip_.call("hipLaunchKernel", function, Extent{4, 1, 1}, Extent{64, 1, 1}, static_cast<void**>(arguments),
              size_t{0}, stream_);
  }
  // Makes the code known as a compiled program's start does, with the addresses that stand for its kernels.
  void register_compiled(const std::vector<char>& code) {
    bundle_ = bundle_of(code);
    wrapper_ = {0x48495046, 1, bundle_.data(), nullptr};
    void** const modules = hip_.library.get<void** (*)(const void*)>("__hipRegisterFatBinary")(&wrapper_);
    const auto add = hip_.library.get<void (*)(void**, const void*, const char*, const char*, unsigned, void*,
                                               void*, void*, void*, int*)>("__hipRegisterFunction");
    for (const auto& [function, name] :
         {std::pair{&kCompute, "plain_compute"}, std::pair{&kReduce, "ncclDevKernel_Generic_1"}})
      add(modules, function, name, name, ~0u, nullptr, nullptr, nullptr, nullptr, nullptr);
  }

  // A graph of kernels, two of them RCCL's, captured and launched so many times.
  void replay(int times) {
    constexpr int kKernels = 8;
    Handle graph = nullptr, ready = nullptr;
    hip_.call("hipStreamBeginCapture", stream_, 0u);
    for (int i = 0; i < kKernels; ++i) launch_compiled(i % 4 == 3 ? &kReduce : &kCompute, at(0x2222000));
    hip_.call("hipStreamEndCapture", stream_, &graph);
    hip_.call("hipGraphInstantiate", &ready, graph, static_cast<Handle*>(nullptr),
              static_cast<char*>(nullptr), size_t{0});
    for (int i = 0; i < times; ++i) {
      hip_.call("hipGraphLaunch", ready, stream_);
      launched_ += kKernels;
    }
    synchronize();
  }
  void synchronize() { hip_.call("hipStreamSynchronize", stream_); }
  int launched() const { return launched_; }

 private:
  static constexpr char kCompute = 0, kReduce = 0;
  static void* at(unsigned long address) { return reinterpret_cast<void*>(address); }
  Hip hip_;
  Handle module_ = nullptr, compute_ = nullptr, reduce_ = nullptr, stream_ = nullptr, begin_ = nullptr,
         end_ = nullptr;
  int launched_ = 0;
  std::vector<char> bundle_;
  Wrapper wrapper_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  Job job(argv[1]);
  const double by_events = job.timed_by_events(), by_launch = job.timed_by_launch();
  job.run(argc > 2 ? std::atoi(argv[2]) : 100);
  if (argc > 3) {
    job.register_compiled(read_file(argv[1]));
    job.replay(std::atoi(argv[3]));
  }
  std::printf("{\"by_events_ms\": %.3f, \"by_launch_ms\": %.3f, \"launched\": %d}\n", by_events, by_launch,
              job.launched());
}
