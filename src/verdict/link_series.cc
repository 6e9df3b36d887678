// SPDX-License-Identifier: Apache-2.0
// Errors, clocks and traffic have one shape here: parts of time with a value. What a log says once and then
// not again holds until the next word; a moment at which a counter could not be read ends what was known.
#include "verdict/link_series.h"

#include <algorithm>
#include <tuple>

#include "links/judge/rise.h"
#include "links/judge/rules.h"
#include "links/judge/words.h"
#include "readers/link_samples/shown_counter.h"

namespace lockstep::verdict {
namespace {

using analysis::FindingId;
using analysis::Severity;
using links::CounterKey;
using links::DeviceKind;
using links::HostSamples;
using links::LinkTrouble;
using links::Sample;
using links::SampledCounter;
using links::SampleLog;

constexpr size_t kMostParts = 4096;

const links::Rule* fault_rule(const CounterKey& key) {
  for (const links::Rule& rule : links::rules())
    if (links::is_fault(rule) && links::matches(rule, key)) return &rule;
  return nullptr;
}

bool counts_xids(const CounterKey& key) {
  return key.kind == DeviceKind::kGpu && key.name.starts_with("xid_");
}

std::optional<SeriesKind> series_kind(const CounterKey& key) {
  if (key.kind == DeviceKind::kGpu) {
    if (key.name == "throttle") return SeriesKind::kSlowed;
    if (key.name == "sm_clock_mhz") return SeriesKind::kClock;
    if (key.name == "ecc_uncorrected" || counts_xids(key)) return SeriesKind::kFault;
  }
  if (fault_rule(key) != nullptr) return SeriesKind::kFault;
  const bool has_traffic = key.kind == DeviceKind::kPort || key.kind == DeviceKind::kNetDevice;
  if (has_traffic && readers::link_samples::shown(key.name).unit == "bytes") return SeriesKind::kTraffic;
  return std::nullopt;
}

// Values from a file may be anything.
void add_up(uint64_t& sum, uint64_t value) {
  if (__builtin_add_overflow(sum, value, &sum)) sum = UINT64_MAX;
}

// Calls with each known sample and the moment up to which it holds.
template <class Function>
void for_known(const SampleLog& log, const SampledCounter& counter, const Function& call) {
  for (size_t i = 0; i < counter.samples.size(); ++i) {
    const Sample& sample = counter.samples[i];
    if (!sample.is_known) continue;
    call(sample, i + 1 < counter.samples.size() ? counter.samples[i + 1].ms : log.last_ms);
  }
}

void add_sampled(const SampleLog& log, const SampledCounter& counter, LinkSeries& series) {
  for_known(log, counter, [&](const Sample& sample, int64_t until_ms) {
    const SampledSpan span{log.time_ns(sample.ms), log.time_ns(until_ms)};
    if (!series.sampled.empty() && series.sampled.back().to_ns == span.from_ns)
      series.sampled.back().to_ns = span.to_ns;
    else
      series.sampled.push_back(span);
  });
}

void add_xids(const SampleLog& log, const SampledCounter& counter, LinkSeries& series) {
  // They count from 0 since sampling began, and are written when they rise.
  uint64_t before = 0;
  for (const Sample& sample : counter.samples) {
    if (!sample.is_known || sample.value <= before) continue;
    const int64_t at_ns = log.time_ns(sample.ms);
    series.parts.push_back({{at_ns, at_ns}, sample.value - before});
    before = sample.value;
  }
  series.sampled.push_back({log.start_ns, log.time_ns(log.last_ms)});
}

void add_faults(const SampleLog& log, const SampledCounter& counter, LinkSeries& series) {
  const links::Rise rise = links::rise_of(counter);
  series.is_at_least = series.is_at_least || rise.is_at_least;
  for (const links::RiseEvent& event : rise.events) {
    const int64_t at_ns = log.time_ns(event.ms);
    series.parts.push_back({{at_ns, at_ns}, event.amount});
  }
}

void add_gauge(const SampleLog& log, const SampledCounter& counter, LinkSeries& series) {
  uint64_t reasons = 0;
  for_known(log, counter, [&](const Sample& sample, int64_t until_ms) {
    SeriesPart part{{log.time_ns(sample.ms), log.time_ns(until_ms)}, sample.value};
    if (series.kind == SeriesKind::kSlowed) {
      if (links::throttle_words(sample.value).empty()) return;
      reasons |= sample.value;
      part.value = static_cast<uint64_t>(part.to_ns - part.from_ns);
    }
    series.parts.push_back(part);
  });
  if (reasons != 0) series.says = links::throttle_words(reasons);
}

// Changes alone are in a log, and so what came after a quiet time came within one reading.
void add_traffic(const SampleLog& log, const SampledCounter& counter, LinkSeries& series) {
  const std::vector<links::RiseEvent> events = links::rise_of(counter).events;
  if (events.empty()) return;
  std::vector<int64_t> apart;
  for (size_t i = 1; i < events.size(); ++i) apart.push_back(events[i].ms - events[i - 1].ms);
  const auto middle = apart.begin() + static_cast<std::ptrdiff_t>(apart.size() / 2);
  if (!apart.empty()) std::nth_element(apart.begin(), middle, apart.end());
  const int64_t usual_ms = apart.size() < 3 ? INT64_MAX : *middle;
  const uint64_t factor = readers::link_samples::shown(counter.key.name).factor;
  int64_t before_ms = counter.samples.front().ms;
  for (const links::RiseEvent& event : events) {
    const int64_t past_ms = event.ms - before_ms;
    const int64_t from_ms = past_ms / 3 * 2 > usual_ms ? event.ms - usual_ms : before_ms;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(event.amount, factor, &bytes)) bytes = UINT64_MAX;
    series.parts.push_back({{log.time_ns(from_ms), log.time_ns(event.ms)}, bytes});
    before_ms = event.ms;
  }
}

// Of those in one of kMostParts equal parts of time, one.
template <class Part, class Merge>
void thin(std::vector<Part>& parts, const Merge& merge) {
  if (parts.size() <= kMostParts) return;
  const int64_t begin = parts.front().from_ns;
  const int64_t each = (parts.back().to_ns - begin) / static_cast<int64_t>(kMostParts) + 1;
  size_t kept = 0;
  for (size_t i = 1; i < parts.size(); ++i) {
    if ((parts[i].from_ns - begin) / each == (parts[kept].from_ns - begin) / each) {
      parts[kept].to_ns = parts[i].to_ns;
      merge(parts[kept], parts[i]);
    } else {
      parts[++kept] = parts[i];
    }
  }
  parts.resize(kept + 1);
  parts.shrink_to_fit();
}

void thin(LinkSeries& series) {
  thin(series.sampled, [](SampledSpan&, const SampledSpan&) {});
  thin(series.parts, [&](SeriesPart& part, const SeriesPart& next) {
    if (series.kind == SeriesKind::kClock)
      part.value = std::min(part.value, next.value);
    else
      add_up(part.value, next.value);
  });
}

// How far a clock fell, of what it was before: every clock rises as a job begins.
double relative_fall(const LinkSeries& series) {
  uint64_t most = 0;
  double fall = 0;
  for (const SeriesPart& part : series.parts) {
    most = std::max(most, part.value);
    if (most > 0) fall = std::max(fall, 1 - static_cast<double>(part.value) / static_cast<double>(most));
  }
  return fall;
}

double weight(const LinkSeries& series) {
  return series.kind == SeriesKind::kClock ? relative_fall(series) : static_cast<double>(series.total);
}

bool says_more(const LinkSeries& a, const LinkSeries& b) {
  const auto severity = [](const LinkSeries& series) {
    return series.severity ? static_cast<int>(*series.severity) : -1;
  };
  return std::tuple(-severity(a), -weight(a), std::tie(a.host, a.device, a.counter)) <
         std::tuple(-severity(b), -weight(b), std::tie(b.host, b.device, b.counter));
}

std::optional<Severity> severity_of(const CounterKey& key, SeriesKind kind, const HostSamples& judged) {
  // Of any finding, where none is named.
  const auto worst = [&](const std::vector<LinkTrouble>& troubles, std::optional<FindingId> id) {
    std::optional<Severity> found;
    for (const LinkTrouble& trouble : troubles)
      if (trouble.device == key.device && (!id || trouble.id == *id))
        found = found ? std::max(*found, trouble.severity) : trouble.severity;
    return found;
  };
  if (kind == SeriesKind::kTraffic) return worst(judged.troubles, std::nullopt);
  if (kind != SeriesKind::kFault) return worst(judged.gpu_troubles, FindingId::kGpuLateThrottled);
  if (const links::Rule* rule = fault_rule(key)) return worst(judged.troubles, rule->finding);
  return worst(judged.gpu_troubles, counts_xids(key) ? FindingId::kAbortedXid : FindingId::kGpuLateMemory);
}

bool has_trouble(const HostSamples& judged) {
  const auto is_some = [](const LinkTrouble& trouble) { return trouble.severity != Severity::kNote; };
  return std::any_of(judged.troubles.begin(), judged.troubles.end(), is_some) ||
         std::any_of(judged.gpu_troubles.begin(), judged.gpu_troubles.end(), is_some);
}

}  // namespace

void LinkSeriesPicker::add(const SampleLog& log) {
  // Of two logs at one time, both would count the same.
  if (log.start_ns < last_ns_) return;
  last_ns_ = log.time_ns(log.last_ms);
  for (const SampledCounter& counter : log.counters) {
    const auto kind = series_kind(counter.key);
    if (!kind) continue;
    LinkSeries& series = of_host_[counter.key];
    if (series.host.empty()) {
      const auto how = readers::link_samples::shown(counter.key.name);
      series.kind = *kind;
      series.host = log.host;
      series.device = counter.key.device;
      series.counter = how.name;
      series.unit = *kind == SeriesKind::kSlowed ? "ratio" : how.unit;
      if (const links::Rule* rule = fault_rule(counter.key)) series.says = rule->says;
    }
    series.boot_id = log.boot_id;
    if (counts_xids(counter.key)) {
      add_xids(log, counter, series);
      continue;
    }
    add_sampled(log, counter, series);
    if (*kind == SeriesKind::kFault)
      add_faults(log, counter, series);
    else if (*kind == SeriesKind::kTraffic)
      add_traffic(log, counter, series);
    else
      add_gauge(log, counter, series);
  }
}

void LinkSeriesPicker::end_host(const HostSamples& judged) {
  const bool is_asked_for = hosts_.contains(judged.host) || has_trouble(judged);
  for (auto& [key, series] : of_host_) {
    series.severity = severity_of(key, series.kind, judged);
    if (series.parts.empty() || (series.kind == SeriesKind::kTraffic && !is_asked_for)) continue;
    if (series.kind == SeriesKind::kClock &&
        (relative_fall(series) <= 0 || (!series.severity && !is_asked_for)))
      continue;
    for (const SeriesPart& part : series.parts) add_up(series.total, part.value);
    thin(series);
    kept_[series.kind].push_back(std::move(series));
  }
  of_host_.clear();
  last_ns_ = 0;
  for (auto& [kind, list] : kept_) {
    std::sort(list.begin(), list.end(), says_more);
    if (list.size() <= kMost) continue;
    omitted_ += list.size() - kMost;
    list.resize(kMost);
  }
}

PickedSeries LinkSeriesPicker::take() {
  PickedSeries picked{{}, omitted_};
  for (auto& [kind, list] : kept_) std::move(list.begin(), list.end(), std::back_inserter(picked.list));
  kept_.clear();
  return picked;
}

}  // namespace lockstep::verdict
