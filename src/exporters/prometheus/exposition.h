// SPDX-License-Identifier: Apache-2.0
// The metrics of metrics.def as prometheus-cpp's families, and as text.
#pragma once
#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

#include "exporters/prometheus/findings.h"
#include "exporters/prometheus/run_metrics.h"
#include "readers/link_samples/live_counters.h"

namespace lockstep::exporters::metrics {

struct MetricInfo {
  std::string_view name;
  prometheus::MetricType type;
  std::string_view help;
};
// All of them, in the order of metrics.def.
std::vector<MetricInfo> all_metrics();

// What the exporter knows of itself.
struct OwnFigures {
  double start_s = 0;  // since the Unix epoch
  uint64_t looks = 0;
  double look_seconds = 0;
  size_t unreadable_files = 0;
};

using LinkCounter = readers::link_samples::LiveCounter;
// Counters of links beyond these have no series.
inline constexpr size_t kMostLinkSeries = 4096;

// Without lockstep_exporter_look_age_seconds, which is made when somebody asks: look_age_family.
std::vector<prometheus::MetricFamily> families(const RunMetrics& run, const Findings& findings,
                                               const OwnFigures& own,
                                               const std::vector<LinkCounter>& links = {});
prometheus::MetricFamily look_age_family(double seconds);

// Prometheus' text format, version 0.0.4.
std::string text_of(const std::vector<prometheus::MetricFamily>& families);

}  // namespace lockstep::exporters::metrics
