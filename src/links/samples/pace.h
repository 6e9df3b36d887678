// SPDX-License-Identifier: Apache-2.0
// How often something is read beside a job, unless the run is watched (SamplerPlaces::watch). A reading of
// one pace reads all that is due more often, too.
#pragma once
#include <cstdint>

namespace lockstep::links {

enum class Pace : uint8_t {
  kSecond,       // what can prove a fault
  kTenSeconds,   // states of use, and how much was moved
  kNvlinkBytes,  // how much NVLinks moved: ten minutes
  kTenMinutes,   // what is slow to answer; at the start and at the end, too
};

}  // namespace lockstep::links
