// SPDX-License-Identifier: Apache-2.0
// Makes counters of any width comparable: what was raw, narrow or cleared meanwhile becomes a number that
// only grows, in the units that people use.
#include "readers/link_samples/link_samples.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "links/counters.h"
#include "links/samples/sample_log.h"
#include "readers/link_samples/shown_counter.h"

namespace lockstep::readers::link_samples {
namespace {

using links::CounterKey;
using links::SampleLog;
using model::HostCounter;

bool sniff(std::span<const std::byte> first_bytes) {
  return std::string_view(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size())
      .starts_with(links::kSampleLogHead);
}

class CountersOfHost {
 public:
  bool is_later(const SampleLog& log) const { return log.start_ns >= last_ns_; }

  void add(const SampleLog& log) {
    last_ns_ = log.time_ns(log.last_ms);
    for (const links::SampledCounter& sampled : log.counters) {
      const Shown how = shown(sampled.key.name);
      HostCounter& counter = counters_[sampled.key];
      counter.host = log.host;
      counter.kind = links::kind_word(sampled.key.kind);
      counter.device = sampled.key.device;
      counter.name = how.name;
      counter.unit = how.unit;
      counter.is_gauge = links::is_gauge(sampled.key);
      add(log, sampled, how.factor, counter);
    }
  }

  void visit(const model::TraceSource::HostCounterVisitor& visit) const {
    for (const auto& [key, counter] : counters_)
      if (!counter.values.empty()) visit(counter);
  }

 private:
  static void add(const SampleLog& log, const links::SampledCounter& sampled, uint64_t factor,
                  HostCounter& counter) {
    uint64_t sum = counter.values.empty() ? 0 : counter.values.back().value;
    const links::Sample* before = nullptr;
    for (const links::Sample& sample : sampled.samples) {
      if (!sample.is_known) continue;
      if (before != nullptr)
        sum += factor * links::increase_of(sampled.key.name, before->value, sample.value).amount;
      const uint64_t value = counter.is_gauge ? sample.value : sum;
      // A damaged line may name a counter twice; readers rely on one value at a time.
      if (!counter.values.empty() && counter.values.back().time_ns == log.time_ns(sample.ms))
        counter.values.back().value = value;
      else if (counter.values.empty() || counter.values.back().value != value)
        counter.values.push_back({log.time_ns(sample.ms), value});
      before = &sample;
    }
  }

  std::map<CounterKey, HostCounter> counters_;
  int64_t last_ns_ = 0;
};

struct Placed {
  std::string host;
  int64_t start_ns = 0;
  std::string path;
};

}  // namespace

// No operations, so no source: the verdict reads these files by links/samples/sample_log.h.
const Format kFormat{.name = "link_samples", .summary = "link counters", .sniff = sniff, .open = nullptr};

std::vector<Error> visit_counters(const std::vector<std::string>& logs,
                                  const model::TraceSource::HostCounterVisitor& visit) {
  std::vector<Error> errors;
  std::vector<Placed> placed;
  for (const std::string& path : logs) {
    const auto head = links::read_sample_log_head(path);
    if (!head)
      errors.push_back(head.error());
    else if (!head->host.empty() && head->start_ns > 0)
      placed.push_back({head->host, head->start_ns, path});
  }
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.host, a.start_ns, a.path) < std::tie(b.host, b.start_ns, b.path);
  });
  for (size_t i = 0; i < placed.size();) {
    CountersOfHost counters;
    const std::string& host = placed[i].host;
    for (; i < placed.size() && placed[i].host == host; ++i) {
      const auto log = links::read_sample_log(placed[i].path);
      if (!log)
        errors.push_back(log.error());
      else if (counters.is_later(*log))
        counters.add(*log);
    }
    counters.visit(visit);
  }
  return errors;
}

}  // namespace lockstep::readers::link_samples
