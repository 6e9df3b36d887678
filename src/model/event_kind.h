// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the `kind` and `flags` columns of the model's tables.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lockstep::model {

enum class EventKind : uint8_t {
  kNone = 0,
#define EVENT(number, name) k##name = number,
#include "model/event_kind.def"
#undef EVENT
};
inline constexpr size_t kEventKinds = 19;  // numbers below this

constexpr uint8_t number(EventKind kind) { return static_cast<uint8_t>(kind); }
// "Coll", "GroupApi", ...; empty for a number that is no kind.
std::string_view event_name(uint8_t kind);

// Bits of `flags`, with the numbers of format/records.h. One bit means different things on different kinds.
inline constexpr uint8_t kFlagGraphCaptured = 0x01;
inline constexpr uint8_t kFlagForeign = 0x02;
inline constexpr uint8_t kFlagComplete = 0x08;
inline constexpr uint8_t kFlagIntraSync = 0x10;
inline constexpr uint8_t kFlagSymmetric = 0x20;
inline constexpr uint8_t kFlagGpuTimes = 0x40;
// Of operations that a program declared, or that PyTorch's own files report.
inline constexpr uint8_t kFlagSeqKnown = 0x02;
inline constexpr uint8_t kFlagP2p = 0x04;
inline constexpr uint8_t kFlagAsyncKnown = 0x08;
inline constexpr uint8_t kFlagAsync = 0x10;

// Whether the caller waits for an operation, where that is known.
constexpr bool is_async_known(uint8_t kind, uint8_t flags) {
  return kind != number(EventKind::kCeColl) && (flags & kFlagAsyncKnown) != 0;
}

// Values of processes.gpu_clock.
enum class GpuClock : uint8_t { kUnknown = 0, kNvidiaNs = 1, kAmdTicks = 2 };

}  // namespace lockstep::model
