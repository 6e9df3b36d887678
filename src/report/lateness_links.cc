// SPDX-License-Identifier: Apache-2.0
// Counters of links and GPUs in the columns of the heat map. Their times are of their host's clock and are
// brought to the run's as those of its ranks are.
#include <algorithm>
#include <cmath>
#include <optional>

#include "report/pages.h"

namespace lockstep::report {
namespace {

using verdict::LinkSeries;
using verdict::SampledSpan;
using verdict::SeriesKind;
using verdict::SeriesPart;

constexpr size_t kSeriesMost = 24, kTrafficLeast = 8;
constexpr const char* kNoCounters =
    "No counters of links and GPUs were sampled beside this run: `lockstep trace` samples them unless "
    "LOCKSTEP_LINKS=off; without it, run `lockstep counters RUN` on each host while the job runs.";

// Where a host is in the job; nothing: no rank ran there.
struct HostPlace {
  std::optional<uint32_t> process;
  bool is_aligned = false;
};

HostPlace place_of_host(const model::Job& job, const LinkSeries& series) {
  HostPlace place;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const model::JobHost& host = job.hosts[job.processes[i].host];
    if (job.text(host.name) != series.host) continue;
    const bool is_same_boot = job.text(host.boot_id) == series.boot_id;
    if (place.process && !is_same_boot) continue;
    place = {i, host.clock.known()};
    // A host that was restarted has two clocks, of which one is the counters'.
    if (is_same_boot) break;
  }
  return place;
}

// Amounts over the columns of a page.
class Columns {
 public:
  explicit Columns(const WaitTable& waits)
      : begin_(waits.begin_ns()), width_(std::max<int64_t>(1, waits.width_ns())), sums_(waits.columns()) {}

  std::optional<size_t> at(int64_t ns) const {
    const int64_t past = difference(ns, begin_);
    if (past < 0 || past / width_ >= static_cast<int64_t>(sums_.size())) return std::nullopt;
    return static_cast<size_t>(past / width_);
  }
  // Calls with each column that a span lies in, and the share of the span.
  template <class Function>
  void for_each(int64_t from, int64_t to, const Function& call) const {
    if (to <= from) {
      if (const auto column = at(from)) call(*column, 1.0);
      return;
    }
    const int64_t end = sum(begin_, width_ * static_cast<int64_t>(sums_.size()));
    if (to <= begin_ || from >= end) return;
    const auto length = static_cast<double>(difference(to, from));
    const size_t last = *at(std::min(to, end) - 1);
    for (size_t column = *at(std::max(from, begin_)); column <= last; ++column) {
      const int64_t begin = begin_ + width_ * static_cast<int64_t>(column);
      call(column, static_cast<double>(std::min(to, begin + width_) - std::max(from, begin)) / length);
    }
  }
  double& operator[](size_t column) { return sums_[column]; }
  size_t size() const { return sums_.size(); }

 private:
  int64_t begin_, width_;
  std::vector<double> sums_;
};

// Numbers that a page can hold.
Json whole(double value) { return static_cast<int64_t>(std::llround(std::min(value, 9e15))); }

Json values_json(const ReportContext& context, const WaitTable& waits, const LinkSeries& series,
                 const HostPlace& place) {
  const auto placed = [&](int64_t ns) { return place.process ? context.placed_ns(*place.process, ns) : ns; };
  Columns sampled(waits), amounts(waits);
  std::vector<bool> is_seen(sampled.size());
  for (const SampledSpan& span : series.sampled) {
    const int64_t from = placed(span.from_ns), to = placed(span.to_ns);
    sampled.for_each(from, to, [&](size_t column, double share) {
      sampled[column] += share * static_cast<double>(difference(to, from));
    });
  }
  for (const SeriesPart& part : series.parts) {
    const auto value = static_cast<double>(part.value);
    const int64_t from = placed(part.from_ns), to = placed(part.to_ns);
    amounts.for_each(from, to, [&](size_t column, double share) {
      if (series.kind != SeriesKind::kClock)
        amounts[column] += share * value;
      else if (!is_seen[column] || value < amounts[column])
        amounts[column] = value;
      is_seen[column] = true;
    });
  }
  Json values = Json::array();
  for (size_t column = 0; column < sampled.size(); ++column) {
    const double ns = sampled[column], amount = amounts[column];
    if (series.kind == SeriesKind::kFault && (ns > 0 || is_seen[column]))
      values.push_back(whole(amount));
    else if (ns <= 0 || (series.kind == SeriesKind::kClock && !is_seen[column]))
      values.push_back(nullptr);
    else if (series.kind == SeriesKind::kClock)
      values.push_back(whole(amount));
    else if (series.kind == SeriesKind::kTraffic)
      values.push_back(whole(amount / ns * 1e9));
    else
      values.push_back(std::round(std::min(1.0, amount / ns) * 1e4) / 1e4);
  }
  return values;
}

bool is_gauge(SeriesKind kind) { return kind == SeriesKind::kSlowed || kind == SeriesKind::kClock; }

const char* kind_text(SeriesKind kind) {
  if (is_gauge(kind)) return "gauge";
  return kind == SeriesKind::kTraffic ? "traffic" : "fault";
}

Json series_json(const LinkSeries& series, bool is_aligned, Json values) {
  return {{"host", shown(series.host)},
          {"device", shown(series.device)},
          {"counter", shown(series.counter)},
          {"unit", shown(series.unit)},
          {"kind", kind_text(series.kind)},
          {"severity", series.severity && series.kind != SeriesKind::kTraffic
                           ? Json(analysis::severity_text(*series.severity))
                           : Json(nullptr)},
          {"says", shown_or_null(series.says)},
          {"aligned", is_aligned},
          {"total", is_gauge(series.kind) ? Json(nullptr) : whole(static_cast<double>(series.total))},
          {"at_least", series.is_at_least},
          {"values", std::move(values)}};
}

}  // namespace

Json links_beside(const ReportContext& context, const WaitTable& waits) {
  const verdict::PickedSeries& picked = context.run().link_series;
  std::vector<const LinkSeries*> shown_ones;
  std::vector<Json> all;
  size_t traffic = 0;
  for (const LinkSeries& series : picked.list) {
    const HostPlace place = place_of_host(context.job(), series);
    Json values = values_json(context, waits, series, place);
    // Counters of another time than the run's show nothing about it.
    if (std::all_of(values.begin(), values.end(), [](const Json& value) { return value.is_null(); }))
      continue;
    all.push_back(series_json(series, place.is_aligned, std::move(values)));
    shown_ones.push_back(&series);
    traffic += series.kind == SeriesKind::kTraffic;
  }
  Json rows = Json::array();
  size_t omitted = picked.omitted;
  for (size_t i = 0; i < all.size(); ++i) {
    const SeriesKind kind = shown_ones[i]->kind;
    // Many clocks leave room for traffic.
    if (rows.size() + (is_gauge(kind) ? std::min(traffic, kTrafficLeast) : 0) < kSeriesMost)
      rows.push_back(std::move(all[i]));
    else
      ++omitted;
  }
  // Other tools' files never have any beside them.
  const bool could_have = context.job().files.empty() && !context.main()->is_of_now;
  const bool has_none = context.run().link_samples.empty();
  return {{"rows", std::move(rows)},
          {"omitted", omitted},
          {"hint", could_have && has_none ? Json(kNoCounters) : Json(nullptr)}};
}

}  // namespace lockstep::report
