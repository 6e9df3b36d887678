// SPDX-License-Identifier: Apache-2.0
// lockstep-rocr-job: dispatches through a real ROCr, on the software devices of host B. Prints one JSON
// object a round.
//   --dispatches N      1000
//   --signal-every K    every K-th bears a signal of the program's, which it waits for; 0 none
//   --in-flight D       packets that it lets be on their way, 256
//   --packets P         that it asks its queue to hold, 4096
//   --kernel-ns T       how long each takes
//   --first-ns T        how long the first one takes, so that the others wait in the queue
//   --gpu G             which of the GPUs that it sees
//   --unwaited          signals of its own are not waited for
//   --shut-down         ends the runtime before the process
//   --rounds N          shuts down and starts anew N - 1 times, each with as many dispatches
//   --fork              has a child that ends at once, and one that is this program anew, between two halves
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "capture/hsa/hsa_abi.h"
#include "sim/hsa/loaded.h"

namespace hsa = lockstep::capture::hsa;
using lockstep::sim::check;

namespace {

struct Options {
  uint64_t dispatches = 1000, signal_every = 0, in_flight = 256, kernel_ns = 0, first_ns = 0, gpu = 0,
           rounds = 1, packets = 4096;
  bool shut_down = false, is_unwaited = false, forks = false;
};

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    bool* const flag = name == "--shut-down"  ? &options.shut_down
                       : name == "--unwaited" ? &options.is_unwaited
                       : name == "--fork"     ? &options.forks
                                              : nullptr;
    if (flag != nullptr) {
      *flag = true;
      continue;
    }
    const uint64_t value = i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0;
    if (name == "--dispatches") options.dispatches = value;
    if (name == "--signal-every") options.signal_every = value;
    if (name == "--in-flight") options.in_flight = value;
    if (name == "--packets") options.packets = value;
    if (name == "--kernel-ns") options.kernel_ns = value;
    if (name == "--first-ns") options.first_ns = value;
    if (name == "--gpu") options.gpu = value;
    if (name == "--rounds") options.rounds = value;
  }
  return options;
}

double now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

struct Runtime {
  lockstep::sim::Loaded library{"libhsa-runtime64.so.1"};
  hsa::Status (*init)() = library.get<hsa::Status (*)()>("hsa_init");
  hsa::Status (*shut_down)() = library.get<hsa::Status (*)()>("hsa_shut_down");
  hsa::IterateAgents iterate_agents = library.get<hsa::IterateAgents>("hsa_iterate_agents");
  hsa::AgentGetInfo agent_get_info = library.get<hsa::AgentGetInfo>("hsa_agent_get_info");
  hsa::QueueCreate queue_create = library.get<hsa::QueueCreate>("hsa_queue_create");
  hsa::QueueDestroy queue_destroy = library.get<hsa::QueueDestroy>("hsa_queue_destroy");
  uint64_t (*add_write_index)(hsa::Queue*, uint64_t) =
      library.get<uint64_t (*)(hsa::Queue*, uint64_t)>("hsa_queue_add_write_index_relaxed");
  hsa::Status (*signal_create)(int64_t, uint32_t, const hsa::Agent*, hsa::Signal*) =
      library.get<hsa::Status (*)(int64_t, uint32_t, const hsa::Agent*, hsa::Signal*)>("hsa_signal_create");
  hsa::SignalDestroy signal_destroy = library.get<hsa::SignalDestroy>("hsa_signal_destroy");
  hsa::SignalStore signal_store = library.get<hsa::SignalStore>("hsa_signal_store_screlease");
  int64_t (*signal_wait)(hsa::Signal, uint32_t, int64_t, uint64_t, uint32_t) =
      library.get<int64_t (*)(hsa::Signal, uint32_t, int64_t, uint64_t, uint32_t)>(
          "hsa_signal_wait_scacquire");
};
Runtime* g_runtime = nullptr;
std::vector<hsa::Agent> g_gpus;

hsa::Status add_gpu(hsa::Agent agent, void*) {
  uint32_t device = 0;
  g_runtime->agent_get_info(agent, hsa::agent_info::kDevice, &device);
  if (device == hsa::agent_info::kDeviceGpu) g_gpus.push_back(agent);
  return hsa::kSuccess;
}

// A queue and how it is filled. At most `in_flight` packets are on their way: a barrier with a signal is
// waited for.
class Stream {
 public:
  Stream(Runtime& runtime, hsa::Agent gpu, uint32_t packets, uint64_t in_flight)
      : runtime_(runtime), in_flight_(in_flight) {
    check("queue_create",
          runtime.queue_create(gpu, packets, 0, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue_));
    check("signal_create", runtime.signal_create(1, 0, nullptr, &done_));
  }
  void put(hsa::Packet packet) {
    const uint64_t at = runtime_.add_write_index(queue_, 1);
    auto* place = static_cast<hsa::Packet*>(queue_->base) + at % queue_->size;
    const uint16_t header = packet.header;
    packet.header = hsa::kInvalid;
    std::memcpy(static_cast<void*>(place), &packet, sizeof packet);
    std::atomic_ref(place->header).store(header, std::memory_order_release);
    runtime_.signal_store(queue_->doorbell, static_cast<int64_t>(at));
    if (++on_way_ >= in_flight_) wait();
  }
  void wait() {
    on_way_ = 0;
    hsa::Packet barrier{};
    barrier.header = 0x1503;
    barrier.completion = done_;
    const uint64_t limit = in_flight_;
    in_flight_ = UINT64_MAX;
    put(barrier);
    in_flight_ = limit;
    on_way_ = 0;
    wait(done_);
    runtime_.signal_store(done_, 1);
  }
  void wait(hsa::Signal signal) {
    while (runtime_.signal_wait(signal, hsa::kConditionLess, 1, UINT64_MAX, 0) >= 1) {
    }
  }
  void destroy() {
    runtime_.queue_destroy(queue_);
    runtime_.signal_destroy(done_);
  }

 private:
  Runtime& runtime_;
  uint64_t in_flight_, on_way_ = 0;
  hsa::Queue* queue_ = nullptr;
  hsa::Signal done_{};
};

bool ended_well(pid_t child) {
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

void have_children() {
  const pid_t plain = fork();
  if (plain == 0) exit(0);  // with exit handlers
  if (!ended_well(plain)) exit(5);
  const pid_t anew = fork();
  if (anew == 0) {
    std::freopen("/dev/null", "w", stdout);
    execl("/proc/self/exe", "lockstep-rocr-job", "--dispatches", "30", static_cast<char*>(nullptr));
    _exit(127);
  }
  if (!ended_well(anew)) exit(6);
}

hsa::Packet kernel_of(uint64_t ns) {
  hsa::Packet kernel{};
  kernel.header = 0x0b02;
  kernel.setup = 1;
  kernel.group[0] = 64;
  kernel.group[1] = kernel.group[2] = 1;
  kernel.grid[1] = kernel.grid[2] = 1;
  kernel.grid[0] = 640;
  kernel.kernel_object = 0x1000;
  kernel.reserved2 = ns;
  return kernel;
}

// From the runtime's start to its end, or to that of the process.
int run(Runtime& runtime, const Options& options, bool shut_down) {
  check("hsa_init", runtime.init());
  g_gpus.clear();
  runtime.iterate_agents(add_gpu, nullptr);
  if (options.gpu >= g_gpus.size()) {
    std::printf("{\"gpus\": %zu}\n", g_gpus.size());
    return options.dispatches == 0 ? 0 : 3;
  }
  Stream stream(runtime, g_gpus[options.gpu], static_cast<uint32_t>(options.packets), options.in_flight);
  hsa::Signal own{};
  check("signal_create", runtime.signal_create(1, 0, nullptr, &own));
  hsa::Packet kernel = kernel_of(options.kernel_ns);
  uint64_t unstamped = 0;
  const double begin = now_ns();
  for (uint64_t i = 1; i <= options.dispatches; ++i) {
    const bool is_signalled = options.signal_every != 0 && i % options.signal_every == 0;
    kernel.completion = is_signalled ? own : hsa::Signal{};
    kernel.reserved2 = i == 1 && options.first_ns != 0 ? options.first_ns : options.kernel_ns;
    stream.put(kernel);
    if (options.forks && i == options.dispatches / 2) have_children();
    if (!is_signalled || options.is_unwaited) continue;
    stream.wait(own);
    unstamped += hsa::memory_of(own)->stop == 0;
    runtime.signal_store(own, 1);
  }
  stream.wait();
  const double ns =
      (now_ns() - begin) / static_cast<double>(options.dispatches == 0 ? 1 : options.dispatches);
  std::printf("{\"gpus\": %zu, \"ns_per_dispatch\": %.1f, \"unstamped\": %llu}\n", g_gpus.size(), ns,
              static_cast<unsigned long long>(unstamped));
  std::fflush(stdout);
  if (!shut_down) return 0;
  stream.destroy();
  runtime.signal_destroy(own);
  check("hsa_shut_down", runtime.shut_down());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  static Runtime runtime;
  g_runtime = &runtime;
  for (uint64_t round = 1; round <= options.rounds; ++round) {
    if (const int code = run(runtime, options, options.shut_down || round < options.rounds)) return code;
  }
}
