// SPDX-License-Identifier: Apache-2.0
// The translation unit of api_bench that finds the library.
#include <cstdlib>

#include "api_calls.h"

void register_recording_calls() {
  setenv("LOCKSTEP_LIBRARY", LOCKSTEP_LIB_DIR "/liblockstep.so", 1);
  setenv("LOCKSTEP_RETAIN", "ring:64M", 0);
  if (lockstep_loaded()) {
    register_calls("recording");
  } else {
    fprintf(stderr, "api_bench: liblockstep.so is not there; build the target lockstep-api\n");
  }
}
