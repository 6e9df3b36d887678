// SPDX-License-Identifier: Apache-2.0
// Score-P's interface for metric plugins, version 1 (Score-P 2.0 and later), in our own words. Score-P opens
// lib<name>.so of each name in SCOREP_METRIC_PLUGINS, calls SCOREP_MetricPlugin_<name>_get_info, and asks for
// the metrics that SCOREP_METRIC_<NAME> lists. 64-bit platforms; enumerations are 32 bits wide.
#pragma once
#include <cstddef>
#include <cstdint>

namespace lockstep::capture::scorep {

inline constexpr uint32_t kPluginVersion = 1;

enum class MetricMode : uint32_t {
  kAccumulatedStart = 0,  // a sum since the program's start
  kAbsolutePoint = 4,     // a value at this moment
};
enum class ValueType : uint32_t { kInt64 = 0, kUint64 = 1, kDouble = 2 };
enum class Base : uint32_t { kBinary = 0, kDecimal = 1 };
enum class Per : uint32_t { kThread = 0, kProcess = 1, kHost = 2, kOnce = 3 };
// kSync: asked for at events of the program, and may say that there is nothing new.
enum class Synchronicity : uint32_t { kStrictlySync = 0, kSync = 1, kAsyncEvent = 2, kAsync = 3 };

// A list of these ends with one without a name. Score-P frees the list, and may free the texts.
struct MetricProperties {
  char* name;
  char* description;
  MetricMode mode;
  ValueType value_type;
  Base base;
  int64_t exponent;
  char* unit;
};
static_assert(sizeof(MetricProperties) == 48 && offsetof(MetricProperties, mode) == 16 &&
              offsetof(MetricProperties, exponent) == 32);

// For metrics that are asked for asynchronously, which ours are not. Times are by the clock function that
// Score-P gives.
struct TimeValuePair {
  uint64_t timestamp, value;
};

// What _get_info returns, by value. Functions that `sync` makes needless stay null.
struct PluginInfo {
  uint32_t plugin_version;
  Per run_per;
  Synchronicity sync;
  uint64_t delta_t;         // least ticks between two questions
  int32_t (*initialize)();  // 0: good
  void (*finalize)();
  MetricProperties* (*get_event_info)(char* token);         // never nullptr
  int32_t (*add_counter)(char* metric);                     // its number; below 0: not known
  uint64_t (*get_current_value)(int32_t id);                // kStrictlySync
  bool (*get_optional_value)(int32_t id, uint64_t* value);  // kSync
  void (*set_clock_function)(uint64_t (*clock)());
  uint64_t (*get_all_values)(int32_t id, TimeValuePair** values);  // kAsyncEvent, kAsync
  void (*synchronize)(bool is_responsible, uint32_t mode);         // since version 1
  uint64_t reserved[92];
};
static_assert(sizeof(PluginInfo) == 832 && offsetof(PluginInfo, delta_t) == 16 &&
              offsetof(PluginInfo, initialize) == 24 && offsetof(PluginInfo, get_optional_value) == 64 &&
              offsetof(PluginInfo, synchronize) == 88);

}  // namespace lockstep::capture::scorep
