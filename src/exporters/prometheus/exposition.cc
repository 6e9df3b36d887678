// SPDX-License-Identifier: Apache-2.0
// The metrics are a list (metrics.def), from which families, types and help texts come, so that none is named
// twice. Rendering is prometheus-cpp's (docs/decisions/0011-metrics-by-prometheus-cpp.md).
#include "exporters/prometheus/exposition.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <tuple>

namespace lockstep::exporters::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using readers::native::LiveHistogram;

enum class Id : size_t {
#define METRIC(id, name, type, help) id,
#include "exporters/prometheus/metrics.def"
#undef METRIC
  kCount
};

constexpr auto kCounter = prometheus::MetricType::Counter;
constexpr auto kGauge = prometheus::MetricType::Gauge;
constexpr auto kHistogram = prometheus::MetricType::Histogram;
constexpr MetricInfo kMetrics[] = {
#define METRIC(id, name, type, help) {name, type, help},
#include "exporters/prometheus/metrics.def"
#undef METRIC
};

using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  Families() {
    for (const MetricInfo& metric : kMetrics)
      all_.push_back({std::string(metric.name), std::string(metric.help), metric.type, {}});
  }
  void put(Id id, Labels labels, double value) {
    MetricFamily& family = all_[static_cast<size_t>(id)];
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = std::move(labels);
    (family.type == kCounter ? metric.counter.value : metric.gauge.value) = value;
  }
  template <const auto& kBounds>
  void put(Id id, Labels labels, const LiveHistogram<kBounds>& values) {
    ClientMetric& metric = all_[static_cast<size_t>(id)].metric.emplace_back();
    metric.label = std::move(labels);
    uint64_t count = 0;
    for (size_t i = 0; i < values.counts.size(); ++i) {
      // Prometheus' buckets are cumulative. The last count, beyond all bounds, has none: the serializer adds
      // `+Inf`.
      count += values.counts[i];
      if (i < std::size(kBounds)) metric.histogram.bucket.push_back({count, kBounds[i]});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = values.sum;
  }
  std::vector<MetricFamily> take() {
    // A family without a series would be served as a bare help text.
    std::erase_if(all_, [](const MetricFamily& family) { return family.metric.empty(); });
    return std::move(all_);
  }

 private:
  std::vector<MetricFamily> all_;
};

constexpr std::string_view kLossNames[] = {
#define LOSS(index, name, text) #name,
#include "format/losses.def"
#undef LOSS
};
constexpr std::array<const char*, readers::native::kLiveSources> kSources = {"channels", "kernel", "api"};
constexpr std::array<const char*, readers::native::kLiveSizes> kSizes = {"small", "medium", "large"};

Labels rank_labels(const RunMetrics& run, uint16_t rank) {
  auto [name, job] = run.rank_labels(rank);
  return {{"rank", name}, {"job_id", job}};
}

Labels with(Labels labels, std::string name, std::string value) {
  labels.push_back({std::move(name), std::move(value)});
  return labels;
}

void put_counters(const RunMetrics& run, Families& all) {
  auto comm = [&](uint16_t slot) { return run.comms().text(slot); };
  auto func = [&](uint16_t slot) { return run.functions().text(slot); };
  for (const auto& [key, sums] : run.operations()) {
    Labels labels = with(with(rank_labels(run, key.rank), "comm", comm(key.comm)), "func", func(key.func));
    all.put(Id::kOperations, labels, sums.ops);
    all.put(Id::kBytes, std::move(labels), sums.bytes);
  }
  for (const auto& [slot, seconds] : run.calls()) all.put(Id::kCallSeconds, {{"func", func(slot)}}, seconds);
  auto gpu_labels = [&](const RunMetrics::GpuKey& key) {
    return Labels{{"comm", comm(key.comm)}, {"func", func(key.func)}, {"source", kSources[key.source]}};
  };
  for (const auto& [key, seconds] : run.gpu()) all.put(Id::kGpuSeconds, gpu_labels(key), seconds);
  for (const auto& [key, bandwidth] : run.bandwidth())
    all.put(Id::kBandwidth, with(gpu_labels(key), "size", kSizes[key.size]), bandwidth);
  for (const auto& [key, sums] : run.members()) {
    Labels labels = with(rank_labels(run, key.rank), "comm", comm(key.comm));
    all.put(Id::kLate, labels, sums.late_s);
    all.put(Id::kWait, std::move(labels), sums.wait_s);
  }
  for (const auto& [slot, count] : run.matched()) all.put(Id::kMatched, {{"comm", comm(slot)}}, count);
  for (const auto& [key, count] : run.losses()) {
    std::string kind(key.kind < std::size(kLossNames) ? kLossNames[key.kind] : "unknown");
    all.put(Id::kLosses, with(rank_labels(run, key.rank), "kind", std::move(kind)), count);
  }
  for (const auto& [rank, count] : run.passed_over())
    // Lost in reading and not in capturing, so it has no number in losses.def.
    all.put(Id::kLosses, with(rank_labels(run, rank), "kind", "chunks_passed_over"), count);
}

void put_gauges(const RunMetrics& run, Families& all) {
  all.put(Id::kRunPresent, {}, run.present() ? 1 : 0);
  // No gauges of a run that cannot be seen: a last value would look alive for ever.
  if (!run.present()) return;
  for (size_t state = 0; state < run.states().size(); ++state) {
    std::string name(live::health_text(static_cast<live::Health>(state)));
    all.put(Id::kProcesses, {{"state", std::move(name)}}, static_cast<double>(run.states()[state]));
  }
  for (const auto& [rank, state] : run.rank_states()) {
    Labels labels = rank_labels(run, rank);
    // Of several ranks together there is no state.
    if (rank != run.ranks().other()) all.put(Id::kRankUp, with(labels, "host", state.host), state.up ? 1 : 0);
    all.put(Id::kBehind, labels, state.behind);
    all.put(Id::kBehindSeconds, labels, state.behind_s);
    all.put(Id::kInFlight, std::move(labels), state.in_flight);
  }
  for (const auto& [key, age] : run.in_flight_age())
    all.put(Id::kInFlightAge, with(rank_labels(run, key.rank), "comm", run.comms().text(key.comm)), age);
  all.put(Id::kLag, {}, run.lag_s());
}

void put_links(const std::vector<LinkCounter>& links, Families& all) {
  // Names that are equal once they are cut make one series: Prometheus refuses two of one name.
  std::map<std::tuple<bool, std::string, std::string, std::string>, double> series;
  for (const LinkCounter& link : links)
    series[{link.is_bytes, label_text(link.host), label_text(link.device), label_text(link.name)}] +=
        static_cast<double>(link.total);
  // Errors sort first, so that they have series where not all have room.
  size_t room = kMostLinkSeries;
  for (const auto& [key, total] : series) {
    if (room-- == 0) break;
    const auto& [is_bytes, host, device, name] = key;
    all.put(is_bytes ? Id::kLinkBytes : Id::kLinkEvents,
            {{"host", host}, {"device", device}, {is_bytes ? "direction" : "counter", name}}, total);
  }
}

void put_findings(const RunMetrics& run, const Findings& findings, Families& all) {
  if (!findings.asked) return;
  all.put(Id::kDiagnosisTime, {}, findings.ended_s);
  all.put(Id::kDiagnosisSeconds, {}, findings.took_s);
  all.put(Id::kDiagnosisFailures, {}, static_cast<double>(findings.failures));
  // Before the first answer no finding is known, which is not the same as none.
  if (findings.ended_s == 0) return;
  for (const auto& [severity, count] : findings.by_severity)
    all.put(Id::kFindings, {{"severity", severity}}, static_cast<double>(count));
  for (const Findings::One& one : findings.list) {
    // A name without a slot becomes `other`, so that findings do not add series of communicators without
    // bound.
    all.put(Id::kFinding,
            {{"class", one.finding_class},
             {"id", one.id},
             {"severity", one.severity},
             {"rank", one.rank},
             {"comm", one.comm.empty() ? "" : run.comms().text(run.comms().slot(one.comm))}},
            1);
  }
}

}  // namespace

std::vector<MetricInfo> all_metrics() { return {std::begin(kMetrics), std::end(kMetrics)}; }

std::vector<MetricFamily> families(const RunMetrics& run, const Findings& findings, const OwnFigures& own,
                                   const std::vector<LinkCounter>& links) {
  Families all;
  put_gauges(run, all);
  put_counters(run, all);
  put_links(links, all);
  put_findings(run, findings, all);
  all.put(Id::kStart, {}, own.start_s);
  all.put(Id::kVersion, {{"version", LOCKSTEP_VERSION}}, 1);
  all.put(Id::kLooks, {}, static_cast<double>(own.looks));
  all.put(Id::kLookSeconds, {}, own.look_seconds);
  all.put(Id::kUnreadable, {}, static_cast<double>(own.unreadable_files));
  all.put(Id::kFolded, {{"label", "rank"}}, static_cast<double>(run.ranks().folded()));
  all.put(Id::kFolded, {{"label", "comm"}}, static_cast<double>(run.comms().folded()));
  all.put(Id::kFolded, {{"label", "func"}}, static_cast<double>(run.functions().folded()));
  all.put(Id::kUnaligned, {}, static_cast<double>(run.unaligned_comms()));
  return all.take();
}

MetricFamily look_age_family(double seconds) {
  Families all;
  all.put(Id::kLookAge, {}, seconds);
  return std::move(all.take().front());
}

std::string text_of(const std::vector<MetricFamily>& families) {
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace lockstep::exporters::metrics
