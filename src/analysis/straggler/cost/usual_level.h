// SPDX-License-Identifier: Apache-2.0
// What a series usually is, where it may have changed once for good.
#pragma once
#include <cstddef>
#include <span>

namespace lockstep::analysis::straggler {

// The lower median of what is there from `from` on; absent values are NaN. Where the values lie on one level
// up to some step and on another from it on, the lower one's. 0: none is there.
float usual_level(std::span<const float> values, size_t from);

}  // namespace lockstep::analysis::straggler
