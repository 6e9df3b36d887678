// SPDX-License-Identifier: Apache-2.0
#include "readers/native/native.h"

#include "readers/native/run.h"

namespace lockstep::readers::native {
namespace {

bool sniff(std::span<const std::byte> first_bytes) {
  return first_bytes.size() >= sizeof format::kMagic &&
         std::memcmp(first_bytes.data(), format::kMagic, sizeof format::kMagic) == 0;
}

}  // namespace

// A hang is what these files are for, so reports that cannot tell of one ask for them.
const Format kFormat = {.name = "native",
                        .summary = "capture files",
                        .sniff = sniff,
                        .open = Run::open,
                        .setting = "lockstep trace -o /shared/job/trace.db COMMAND",
                        .reports_hangs = true};

}  // namespace lockstep::readers::native
