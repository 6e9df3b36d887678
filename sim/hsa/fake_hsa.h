// SPDX-License-Identifier: Apache-2.0
// Host A: AMD's runtime without a GPU, as a tools library sees it. Tables of any release's layout, queues
// whose packets pass through intercept handlers one by one or in batches, signals with stamps, executables,
// copies, and every fault that a tools library must bear as an option. Kernels do nothing but take their
// time.
//
// One runtime a process. A program's calls go through the tables, so what a tool has put there acts. Handlers
// are called as the runtime does: the last registered first, each writer calls the next, the lowest gives to
// the queue.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "capture/hsa/hsa_abi.h"

namespace lockstep::sim {

namespace hsa = capture::hsa;

struct FakeHsaOptions {
  uint32_t gpus = 1;
  // Versions that the tables bear: (root major), (core major), (ext major), and the size of the latter.
  uint32_t root_major = 1, core_major = 1, ext_major = 1, core_minor = 1016, ext_minor = 400;
  size_t missing_core_slot = 0;               // one that holds no function
  size_t create_queues_slot = 704;            // where hsa_amd_queue_create looks for its function
  bool are_batches = false;                   // all packets of a doorbell in one call
  bool is_wrapped_linear = false;             // such a batch is handed over as it lies, past the ring's end
  hsa::Status intercept_status = 0;           // what making an intercept queue fails with
  hsa::Status destroy_status = 0;             // what destroying a queue fails with
  bool rejects_unlimited = false;             // segment sizes of 2^32 - 1
  int64_t most_signals = -1;                  // that can be made by a tool at a time
  bool has_stamps = true, goes_back = false;  // of kernels: start and stop are there; stop is before start
  bool has_tick_hz = true;
  bool is_idle = false;  // the GPU does not begin; see FakeHsa::go
  // Called when a queue has gone and the destroying call has not returned; the next queue gets its address.
  std::function<void()> on_destroyed = nullptr;
};

// How long a kernel takes, in Packet::reserved2: ns, or for ever.
inline constexpr uint64_t kNever = ~uint64_t{0};
inline constexpr uint64_t kTickHz = 100'000'000, kTicksAtBoot = 12345;

struct FakeSymbol {
  std::string name;  // with ".kd"
  uint64_t object;
};

struct FakeHsaCounts {
  uint64_t live_signals = 0;  // that tools made by amd_signal_create
  uint64_t kernels = 0, barriers = 0, most_in_callback = 0, callbacks = 0, overflows = 0;
};

class FakeHsa {
 public:
  static FakeHsa& get();

  // hsa_init: loads what HSA_TOOLS_LIB names, in its order. How many of them loaded.
  int init(const FakeHsaOptions& options);
  void shut_down();
  hsa::RootTable* tables();
  // A tool in this program, as if it were loaded next.
  void load_tool(bool (*on_load)(const void*, uint64_t, uint64_t, const char* const*));

  hsa::Agent cpu() const { return {1}; }
  hsa::Agent gpu(uint32_t number = 0) const { return {2 + uint64_t{number}}; }
  hsa::Executable freeze(std::vector<FakeSymbol> symbols);
  void destroy(hsa::Executable executable);
  hsa::Queue* make_queue(uint32_t size = 64, uint32_t gpu = 0, hsa::Status* status = nullptr);
  void destroy(hsa::Queue* queue);
  // As programs of ROCm 10 call it: through what the runtime exports.
  hsa::Status make_queues(std::vector<hsa::QueueDescriptor>& wanted, uint32_t gpu = 0);
  hsa::Queue* acquire_counted();
  // What the program's own calls, or a tool for a descriptor, asked of a queue.
  struct Asked {
    uint32_t priority = hsa::kNormalPriority, mask_bits = 0;
    bool is_intercept = false;
  };
  Asked asked(hsa::Queue* queue);
  hsa::Signal make_signal(int64_t value = 1);
  // Puts packets into the queue and rings its doorbell once.
  void submit(hsa::Queue* queue, const std::vector<hsa::Packet>& packets);
  // The newest tool's handler of a queue, to be called as the runtime does, without what that does around it.
  struct Handler {
    hsa::PacketHandler call = nullptr;
    void* data = nullptr;
  };
  Handler handler(hsa::Queue* queue);
  // Until the signal is 0.
  void wait(hsa::Signal signal);
  // Until the queue is empty.
  void wait(hsa::Queue* queue);
  enum class Memory : uint8_t { kHost, kGpu, kHiddenGpu };  // the last: the host cannot read it
  void* allocate(size_t bytes, Memory of = Memory::kHost);
  void free(void* memory, bool by_pool = true);
  hsa::Status copy(void* to, const void* from, size_t bytes, hsa::Signal completion, bool to_gpu = true);
  hsa::Times copy_times(hsa::Signal signal);
  void go();  // the GPU begins, if it was idle
  FakeHsaCounts counts();

  static hsa::Packet kernel(uint64_t object, uint64_t ns = 0, hsa::Signal completion = {},
                            uint64_t arguments = 0);
  static hsa::Packet barrier(hsa::Signal completion = {});
};

}  // namespace lockstep::sim
