// SPDX-License-Identifier: Apache-2.0
// Lockstep's counters of this process as metrics of Score-P. Synchronous, one value per process: Score-P asks
// at events of the main thread, and is told when there is something new. docs/score-p.md says how to use it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/scorep/metric_plugin_abi.h"
#include "capture/scorep/process_counters.h"

namespace lockstep::capture::scorep {
namespace {

constexpr char kPrefix[] = "lockstep::";

struct Metric {
  const char* name;
  MetricMode mode;
  const char* unit;
  int64_t exponent;
  const char* text;
};
constexpr Metric kMetrics[] = {
#define METRIC(name, mode, unit, exponent, text) {#name, MetricMode::mode, unit, exponent, text},
#include "capture/scorep/metrics.def"
#undef METRIC
};
constexpr int32_t kMetricCount = sizeof(kMetrics) / sizeof(kMetrics[0]);

ProcessCounters g_counters;
uint64_t g_reported[kMetricCount];  // the look that a metric was last told of
char g_busy;                        // one thread looks; another has nothing new

// By name, with or without the prefix; -1 none.
int32_t find(const char* name) {
  if (strncmp(name, kPrefix, sizeof(kPrefix) - 1) == 0) name += sizeof(kPrefix) - 1;
  for (int32_t i = 0; i < kMetricCount; ++i) {
    if (strcmp(kMetrics[i].name, name) == 0) return i;
  }
  return -1;
}

MetricProperties properties(const Metric& metric) {
  char name[64];
  snprintf(name, sizeof(name), "%s%s", kPrefix, metric.name);
  return {strdup(name),   strdup(metric.text), metric.mode,        ValueType::kUint64,
          Base::kDecimal, metric.exponent,     strdup(metric.unit)};
}

int32_t initialize() { return 0; }

void finalize() {
  g_counters.close();
  memset(g_reported, 0, sizeof(g_reported));
}

// `*` stands for all of them.
MetricProperties* get_event_info(char* token) {
  auto* const list = static_cast<MetricProperties*>(calloc(kMetricCount + 1, sizeof(MetricProperties)));
  if (list == nullptr) return nullptr;
  if (strcmp(token, "*") == 0) {
    for (int32_t i = 0; i < kMetricCount; ++i) list[i] = properties(kMetrics[i]);
  } else if (const int32_t found = find(token); found >= 0) {
    list[0] = properties(kMetrics[found]);
  } else {
    fprintf(stderr, "lockstep_plugin: no metric '%s'; ask for *, or for some of:", token);
    for (const Metric& metric : kMetrics) fprintf(stderr, " %s", metric.name);
    fprintf(stderr, "\n");
  }
  return list;
}

int32_t add_counter(char* metric) { return find(metric); }

uint64_t value_of(int32_t id) {
  const Totals& totals = g_counters.totals();
  const uint64_t values[] = {totals.operations, totals.bytes,  totals.open,    totals.oldest_open_ns,
                             totals.dropped,    totals.losses, totals.recorded};
  static_assert(sizeof(values) / sizeof(values[0]) == kMetricCount);
  return values[id];
}

bool get_optional_value(int32_t id, uint64_t* value) {
  // A thread that finds another one looking does not wait: it reports nothing new.
  if (id < 0 || id >= kMetricCount || __atomic_test_and_set(&g_busy, __ATOMIC_ACQUIRE)) return false;
  const uint64_t look = g_counters.look();
  // Each metric once for each look: between two looks there is nothing new.
  const bool is_new = look != g_reported[id];
  if (is_new) {
    g_reported[id] = look;
    *value = value_of(id);
  }
  __atomic_clear(&g_busy, __ATOMIC_RELEASE);
  return is_new;
}

}  // namespace
}  // namespace lockstep::capture::scorep

extern "C" __attribute__((visibility("default"))) lockstep::capture::scorep::PluginInfo
SCOREP_MetricPlugin_lockstep_plugin_get_info() {
  using namespace lockstep::capture::scorep;
  PluginInfo info{};
  info.plugin_version = kPluginVersion;
  info.run_per = Per::kProcess;
  info.sync = Synchronicity::kSync;
  info.initialize = initialize;
  info.finalize = finalize;
  info.get_event_info = get_event_info;
  info.add_counter = add_counter;
  info.get_optional_value = get_optional_value;
  return info;
}
