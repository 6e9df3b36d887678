// SPDX-License-Identifier: Apache-2.0
// The thread that records kernels which have ended, defines names, clocks and counters, and sleeps between:
// 200 us while kernels end, up to 5 ms while none does. It waits for no kernel.
#pragma once
#include <cstdint>

namespace lockstep::capture::hsa {

// False: the system starts no thread; nothing is captured then.
bool start_collector();
// The end of the process, or of the runtime: records what has ended by then or within 100 ms, then the
// counters. Once.
void drain();
// The runtime has ended; a new one may begin.
void stop_collector();

}  // namespace lockstep::capture::hsa
