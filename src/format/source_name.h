// SPDX-License-Identifier: Apache-2.0
// What a capture library is called: in the names of its files, and by the tools.
#pragma once
#include "format/file_layout.h"

namespace lockstep::format {

// `unknown` for what is none of them.
constexpr const char* source_name(Source source, const char* unknown) {
  switch (source) {
    case Source::kNccl:
      return "nccl";
    case Source::kApi:
      return "api";
    case Source::kCuda:
      return "cuda";
    case Source::kHsa:
      return "hsa";
    case Source::kNone:
      break;
  }
  return unknown;
}

}  // namespace lockstep::format
