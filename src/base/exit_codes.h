// SPDX-License-Identifier: Apache-2.0
// What the program answers with. docs/diagnose.md has the table.
#pragma once

namespace lockstep {

// They are an interface: scripts and CI jobs test them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFindings = 1;  // what was looked at is not as it should be
inline constexpr int kExitUsage = 2;     // bad usage, or input that cannot be read
inline constexpr int kExitCannotTell = 3;

}  // namespace lockstep
