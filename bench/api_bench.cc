// SPDX-License-Identifier: Apache-2.0
// What a call of lockstep.h costs where nothing is loaded, and with liblockstep.so recording
// (LOCKSTEP_RETAIN, unless set a ring; LOCKSTEP_DIR says where the file goes). An operation is two calls,
// begin and end.
#include <cstdlib>

#include "api_calls.h"

void register_recording_calls();

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  unsetenv("LOCKSTEP_LIBRARY");
  if (lockstep_loaded()) {  // finds out, for this translation unit: nothing is there
    fprintf(stderr, "api_bench: liblockstep.so is preloaded; nothing to compare with\n");
    return 1;
  }
  register_calls("nothing_loaded");
  register_recording_calls();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
