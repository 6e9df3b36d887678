// SPDX-License-Identifier: Apache-2.0
// What a raw counter is called and counted in where people see it.
#pragma once
#include <cstdint>
#include <string_view>

namespace lockstep::readers::link_samples {

struct Shown {
  std::string_view counter, name, unit;
  uint64_t factor = 1;  // of the raw value
};
Shown shown(std::string_view counter);

}  // namespace lockstep::readers::link_samples
