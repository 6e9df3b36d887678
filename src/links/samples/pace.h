// SPDX-License-Identifier: Apache-2.0
// How often something is read beside a job. A reading of one pace reads all that is due more often, too.
#pragma once
#include <cstdint>

namespace lockstep::links {

enum class Pace : uint8_t {
  kSecond,      // what can prove a fault
  kTenSeconds,  // states of use, and how much was moved
  kTenMinutes,  // what is slow to answer; at the start and at the end, too
};

}  // namespace lockstep::links
