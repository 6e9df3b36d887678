// SPDX-License-Identifier: Apache-2.0
// lockstep-hip-job CODE [LAUNCHES]: host C, a distribution's own HIP on host B. CODE is kernels.cl compiled.
// Does what programs do that launch kernels, and prints one JSON object: events' times, and how many kernels
// it launched.
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "sim/hsa/loaded.h"

namespace {

using Handle = void*;
using lockstep::sim::check;

struct Hip {
  lockstep::sim::Loaded library{"libamdhip64.so.5"};
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    check(name, library.get<unsigned (*)(Arguments...)>(name)(arguments...));
  }
};

std::vector<char> read_file(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Arguments {
  void* first;
  unsigned long bytes;
};

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
    Arguments arguments{first, 64};
    size_t size = sizeof arguments;
    void* extra[] = {reinterpret_cast<void*>(1), &arguments, reinterpret_cast<void*>(2), &size,
                     reinterpret_cast<void*>(3)};
    hip_.call("hipModuleLaunchKernel", function, 4u, 1u, 1u, 64u, 1u, 1u, 0u, stream_,
              static_cast<void**>(nullptr), static_cast<void**>(extra));
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
  std::printf("{\"by_events_ms\": %.3f, \"by_launch_ms\": %.3f, \"launched\": %d}\n", by_events, by_launch,
              job.launched());
}
