// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::test {

// How long a test waits for what has to happen. Only a hang takes as long, however busy the machine is, so no
// test passes or fails by how quick something was.
inline constexpr double kPatienceSeconds = 120;

}  // namespace lockstep::test
