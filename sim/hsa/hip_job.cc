// SPDX-License-Identifier: Apache-2.0
// lockstep-hip-job CODE [LAUNCHES [REPLAYS]]: host C, a distribution's own HIP on host B. CODE is kernels.cl
// compiled. Does what programs do that launch kernels, REPLAYS times also by a graph, and prints one JSON
// object: events' times, and how many kernels it launched.
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/hsa/hip.h"

namespace {

using Handle = void*;
using lockstep::sim::Arguments;
using lockstep::sim::Hip;
using lockstep::sim::read_file;

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
  // A graph of kernels, two of them RCCL's, captured and launched so many times. How long the first one took,
  // in ms, by events around it.
  double replay(const std::vector<char>& code, int times) {
    constexpr int kKernels = 8;
    const lockstep::sim::CompiledKernels compiled(hip_, code);
    Handle graph = nullptr, ready = nullptr;
    hip_.call("hipStreamBeginCapture", stream_, 0u);
    for (int i = 0; i < kKernels; ++i) compiled.launch(i % 4 == 3, at(0x2222000), 4, stream_);
    hip_.call("hipStreamEndCapture", stream_, &graph);
    hip_.call("hipGraphInstantiate", &ready, graph, static_cast<Handle*>(nullptr),
              static_cast<char*>(nullptr), size_t{0});
    double took = -1;
    for (int i = 0; i < times; ++i) {
      if (i == 0) hip_.call("hipEventRecord", begin_, stream_);
      hip_.call("hipGraphLaunch", ready, stream_);
      launched_ += kKernels;
      if (i > 0) continue;
      hip_.call("hipEventRecord", end_, stream_);
      took = elapsed_ms();
    }
    synchronize();
    return took;
  }
  void synchronize() { hip_.call("hipStreamSynchronize", stream_); }
  int launched() const { return launched_; }

 private:
  static void* at(unsigned long address) { return reinterpret_cast<void*>(address); }
  Hip hip_;
  Handle module_ = nullptr, compute_ = nullptr, reduce_ = nullptr, stream_ = nullptr, begin_ = nullptr,
         end_ = nullptr;
  int launched_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  Job job(argv[1]);
  const double by_events = job.timed_by_events(), by_launch = job.timed_by_launch();
  job.run(argc > 2 ? std::atoi(argv[2]) : 100);
  const double by_graph = argc > 3 ? job.replay(read_file(argv[1]), std::atoi(argv[3])) : -1;
  std::printf("{\"by_events_ms\": %.3f, \"by_launch_ms\": %.3f, \"by_graph_ms\": %.3f, \"launched\": %d}\n",
              by_events, by_launch, by_graph, job.launched());
}
