// SPDX-License-Identifier: Apache-2.0
// Where the capture libraries are: beside the program as built, or as installed.
#pragma once
#include <string>

#include "base/result.h"

namespace lockstep::cli::trace {

struct CaptureLibraries {
  std::string nccl;  // liblockstep-nccl.so
  std::string api;   // liblockstep.so; empty: not there
  std::string cuda;  // liblockstep-cuda.so; likewise
  std::string hsa;   // liblockstep-hsa.so; likewise
  std::string rocp;  // liblockstep-rocp.so; likewise
};
Result<CaptureLibraries> find_capture_libraries();

}  // namespace lockstep::cli::trace
