// SPDX-License-Identifier: Apache-2.0
// lockstep-rccl-job CODE OPERATIONS [LATE_RANK FROM MS [CAPTURED REPLAYS]]: one rank of a job on host C, as
// RCCL does it. Each operation is a kernel of RCCL's name, whose communicator is its first argument
// (sim/hsa/meeting.h lets the ranks wait for each other), inside the calls that RCCL makes of its profiler
// plugin, version 5; before it a kernel that computes. The late rank takes MS longer before each operation
// from FROM on. At the end a graph of CAPTURED operations runs REPLAYS times. RANK and WORLD_SIZE say who it
// is.
#include <time.h>

#include <string>

#include "capture/nccl/abi.h"
#include "sim/hsa/hip.h"
#include "sim/hsa/meeting.h"

namespace {

namespace abi = lockstep::nccl_abi;
namespace sim = lockstep::sim;

int number_of(const char* variable, int unset) {
  const char* set = std::getenv(variable);
  return set != nullptr ? std::atoi(set) : unset;
}

void pause_ms(int ms) {
  const timespec pause{ms / 1000, ms % 1000 * 1'000'000L};
  nanosleep(&pause, nullptr);
}

// Nothing where no plugin is named.
class Profiler {
 public:
  Profiler(int rank, int ranks) : rank_(rank) {
    const char* path = std::getenv("NCCL_PROFILER_PLUGIN");
    void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW);
    if (library != nullptr) plugin_ = static_cast<abi::v5::Plugin*>(dlsym(library, "ncclProfiler_v5"));
    if (plugin_ != nullptr && plugin_->init(&context_, 0xc0c0, &mask_, "", 1, ranks, rank, nullptr) != 0)
      plugin_ = nullptr;
  }
  abi::v5::Descriptor descriptor(uint64_t type, void* parent) const {
    abi::v5::Descriptor made{};
    made.type = type;
    made.parent = parent;
    made.rank = rank_;
    return made;
  }
  void* start(abi::v5::Descriptor descriptor) {
    void* handle = nullptr;
    const bool is_wanted = plugin_ != nullptr && (static_cast<uint64_t>(mask_) & descriptor.type) != 0;
    if (is_wanted) plugin_->start_event(context_, &handle, &descriptor);
    return handle;
  }
  void stop(void* handle) {
    if (handle != nullptr) plugin_->stop_event(handle);
  }
  void finalize() {
    if (plugin_ != nullptr) plugin_->finalize(context_);
  }

 private:
  const int rank_;
  abi::v5::Plugin* plugin_ = nullptr;
  void* context_ = nullptr;
  int mask_ = 0;
};

class Rank {
 public:
  explicit Rank(const char* code) {
    hip_.call("hipInit", 0u);
    hip_.call("hipSetDevice", 0);
    const std::vector<char> bytes = sim::read_file(code);
    hip_.call("hipModuleLoadData", &module_, static_cast<const void*>(bytes.data()));
    hip_.call("hipModuleGetFunction", &compute_, module_, "plain_compute");
    hip_.call("hipModuleGetFunction", &reduce_, module_, "ncclDevKernel_Generic_1");
    hip_.call("hipStreamCreate", &stream_);
  }
  int number() const { return rank_; }
  void compute() { sim::launch(hip_, compute_, {nullptr, 64}, 120, stream_); }
  void all_reduce(uint64_t n) {
    call_all_reduce(n, [this](void* communicator) {
      sim::launch(hip_, reduce_, {communicator, 64}, kChannels, stream_);
    });
    hip_.call("hipStreamSynchronize", stream_);
  }
  void replay(const std::vector<char>& code, int captured, int times) {
    const sim::CompiledKernels compiled(hip_, code);
    void *graph = nullptr, *ready = nullptr;
    hip_.call("hipStreamBeginCapture", stream_, 0u);
    is_capturing_ = true;
    for (int i = 0; i < captured; ++i) {
      compiled.launch(false, nullptr, 120, stream_);
      call_all_reduce(0,
                      [&](void* communicator) { compiled.launch(true, communicator, kChannels, stream_); });
    }
    is_capturing_ = false;
    hip_.call("hipStreamEndCapture", stream_, &graph);
    hip_.call("hipGraphInstantiate", &ready, graph, static_cast<void**>(nullptr), static_cast<char*>(nullptr),
              size_t{0});
    for (int i = 0; i < times; ++i) hip_.call("hipGraphLaunch", ready, stream_);
    hip_.call("hipStreamSynchronize", stream_);
  }
  void end() { profiler_.finalize(); }

 private:
  static constexpr unsigned kChannels = 16;

  template <class Launch>
  void call_all_reduce(uint64_t n, Launch&& launch_with) {
    constexpr size_t kCount = 1 << 20;
    auto of_group = profiler_.descriptor(abi::kTypeGroupApi, nullptr);
    of_group.group_api = {is_capturing_, 1};
    void* group = profiler_.start(of_group);
    auto of_call = profiler_.descriptor(abi::kTypeCollApi, group);
    of_call.coll_api = {"AllReduce", kCount, "ncclFloat32", 0, stream_, is_capturing_};
    void* call = profiler_.start(of_call);
    profiler_.stop(call);
    auto of_launch = profiler_.descriptor(abi::kTypeKernelLaunch, group);
    of_launch.kernel_launch = {stream_};
    void* launch = profiler_.start(of_launch);
    auto* communicator = reinterpret_cast<void*>(sim::communicator_of(static_cast<uint64_t>(rank_)));
    launch_with(communicator);
    profiler_.stop(launch);
    void* plan = profiler_.start(profiler_.descriptor(abi::kTypeGroup, group));
    auto of_task = profiler_.descriptor(abi::kTypeColl, call);
    of_task.coll = {n,         "AllReduce", nullptr, nullptr,  kCount, 0, "ncclFloat32",
                    kChannels, 16,          "RING",  "SIMPLE", plan};
    void* task = profiler_.start(of_task);
    profiler_.stop(task);
    profiler_.stop(plan);
    profiler_.stop(group);
  }

  const int rank_ = number_of("RANK", 0);
  sim::Hip hip_;
  void *module_ = nullptr, *compute_ = nullptr, *reduce_ = nullptr, *stream_ = nullptr;
  bool is_capturing_ = false;
  Profiler profiler_{rank_, number_of("WORLD_SIZE", 1)};  // RCCL loads it when HIP has been at work
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Rank rank(argv[1]);
  const bool is_late = argc > 5 && rank.number() == std::atoi(argv[3]);
  for (int i = 0; i < std::atoi(argv[2]); ++i) {
    rank.compute();
    pause_ms(is_late && i >= std::atoi(argv[4]) ? std::atoi(argv[5]) : 1);
    rank.all_reduce(static_cast<uint64_t>(i));
  }
  if (argc > 7) rank.replay(sim::read_file(argv[1]), std::atoi(argv[6]), std::atoi(argv[7]));
  rank.end();
}
