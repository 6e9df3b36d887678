// SPDX-License-Identifier: Apache-2.0
// The libcupti of this process. Any thread; not for the event path.
#pragma once
#include "capture/cuda/cupti_abi.h"

namespace lockstep::capture::cuda {

struct CuptiLibrary {
#define FUNCTION(name, symbol, needed, parameters) cupti::Result(*name) parameters;
#include "capture/cuda/cupti_functions.def"
#undef FUNCTION
  char path[512];
};

// The library that the program has loaded itself, as PyTorch does; nullptr if it has none (so far).
const CuptiLibrary* loaded_cupti();
// That one, or else the one of the CUDA that the program uses: beside its libcudart (toolkit, wheels of CUDA
// 12 and 13), under CUDA_HOME, CUDA_PATH or /usr/local/cuda, or as the loader finds it. nullptr: `why` says
// what is missing.
const CuptiLibrary* find_cupti(char* why, size_t bytes);

// CUDA version that the driver offers, as 13000; 0 unknown.
int driver_version();

}  // namespace lockstep::capture::cuda
