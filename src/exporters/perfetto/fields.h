// SPDX-License-Identifier: Apache-2.0
// Numbers of the fields of Perfetto's trace format that are written here, from its public definition
// (perfetto.dev/docs/reference/trace-packet-proto). A namespace for each message.
#pragma once
#include <cstdint>

namespace lockstep::exporters::perfetto::field {

namespace trace {
inline constexpr uint32_t kPacket = 1;
}
namespace packet {
inline constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                          kInternedData = 12, kSequenceFlags = 13, kCompressed = 50, kTimestampClock = 58,
                          kDefaults = 59, kTrackDescriptor = 60, kExtensionDescriptor = 72;
}
namespace defaults {
inline constexpr uint32_t kTrackEvent = 11, kTimestampClock = 58;
}
namespace clock_snapshot {
inline constexpr uint32_t kClock = 1, kPrimaryClock = 2;
}
namespace clock {
inline constexpr uint32_t kId = 1, kTimestamp = 2, kIsIncremental = 3;
}
namespace interned {
inline constexpr uint32_t kCategory = 1, kEventName = 2, kAnnotationName = 3, kAnnotationText = 29;
}
namespace interned_text {  // of all four
inline constexpr uint32_t kIid = 1, kText = 2;
}
namespace track {
inline constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8,
                          kOrderRank = 12, kProcessOrdering = 19, kThreadOrdering = 20;
}
namespace process {
inline constexpr uint32_t kPid = 1, kName = 6, kLabels = 8;
}
namespace thread {
inline constexpr uint32_t kPid = 1, kTid = 2, kName = 5;
}
namespace counter {
inline constexpr uint32_t kUnit = 3, kUnitName = 6;
}
namespace event {
inline constexpr uint32_t kCategoryIid = 3, kAnnotation = 4, kType = 9, kNameIid = 10, kTrack = 11,
                          kCategory = 22, kName = 23, kCounterValue = 30, kDoubleCounterValue = 44,
                          kFlow = 47;
// Ours, in the range that is free for anyone's additions.
inline constexpr uint32_t kLockstep = 9911;
}  // namespace event
namespace annotation {
inline constexpr uint32_t kNameIid = 1, kUnsigned = 3, kSigned = 4, kText = 6, kName = 10, kTextIid = 17;
}
namespace extension_descriptor {
inline constexpr uint32_t kSet = 1;
}

}  // namespace lockstep::exporters::perfetto::field

namespace lockstep::exporters::perfetto {

enum EventType : uint32_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterEvent = 4 };
enum SequenceFlag : uint32_t { kStateCleared = 1, kNeedsState = 2 };
inline constexpr uint32_t kRealtimeClock = 1;
inline constexpr uint32_t kFirstOwnClock = 64, kEndOfOwnClocks = 128;  // of a sequence
inline constexpr uint32_t kExplicitOrdering = 1;
inline constexpr uint32_t kUnitCount = 2;  // of a counter

}  // namespace lockstep::exporters::perfetto
