// SPDX-License-Identifier: Apache-2.0
// A libcupti without a GPU, for tests: it keeps to the interface that capture/cuda/cupti_abi.h describes (one
// pair of callbacks, one subscriber, a switch a kind; buffers asked for when a record needs room, returned
// when full or flushed) and records what the test says happened. Built twice: as a new release, and as an old
// one that lacks functions and fields. Times are on the clock that CUPTI shows then: CLOCK_REALTIME, or the
// registered callback.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::sim {

struct FakeLaunch {
  const char* name;
  uint32_t stream = 7;
  uint32_t device = 0;
  uint32_t driver_call = 0;  // the call that launches, by CUPTI's number; 0 none
  uint32_t runtime_call =
      0;  // a call of the runtime around it: where those are recorded, the driver's is not
  uint32_t graph = 0;
  uint64_t node = 0;
  uint32_t channels = 1;  // blocks of the grid: columns,
  uint32_t rows = 1, layers = 1;
};
struct FakeCopy {
  uint32_t kind;  // 1 copy, 2 fill, 22 between GPUs
  uint64_t bytes;
};
struct FakeState {
  bool ours_registered;    // the registered callbacks are not null
  uint32_t subscribers;    // 0 or 1
  uint32_t enabled_kinds;  // how many
  uint32_t enabled_calls;  // of the driver, one by one
  uint64_t refused;        // buffers that were asked for and not given
  uint64_t dropped;        // records, for want of a buffer
  uint32_t buffers_out;    // that this library holds
  uint32_t finalized;      // how often
};

// What a test calls, as symbols of the library. `run` launches and completes at once, on the calling thread.
struct FakeCupti {
  uint64_t (*now)();
  uint32_t (*launch)(const FakeLaunch*);  // returns the correlation; not complete yet
  void (*finish)(uint32_t correlation, uint64_t start,
                 uint64_t end);  // its kernels, in the order of launching
  uint32_t (*copy)(const FakeCopy*, uint64_t start, uint64_t end);
  void (*call)(uint32_t driver_call);  // one that launches nothing
  uint32_t (*other)(uint32_t kind);    // a record of a kind that nobody here reads, 24 bytes
  FakeState (*state)();
};
inline constexpr char kFakeCuptiSymbol[] = "fake_cupti_functions";  // of type const FakeCupti

}  // namespace lockstep::sim
