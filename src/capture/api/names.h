// SPDX-License-Identifier: Apache-2.0
// The caller's texts (collectives, types, marks) may change or vanish after the call, while the shape cache
// knows texts by address. Here each distinct text gets one copy and one address for the life of the process.
//
// Any thread, without locks: a slot is claimed by compare-and-swap, filled, and published. Two threads that
// bring the same new text at the same moment may both get a copy; the tools compare text, so that costs a
// definition and nothing else.
#pragma once
#include <cstddef>

namespace lockstep::capture::api {

// Longest text kept, terminator included; longer ones are cut. As long as the longest field of a definition.
inline constexpr size_t kNameBytes = 56;

// The copy of a text; nullptr for nullptr, and when the table is full: `*full` is then set.
const char* intern(const char* text, bool* full);

}  // namespace lockstep::capture::api
