// SPDX-License-Identifier: Apache-2.0
// What sampled counters of hosts' links and GPUs did over time, as far as a report draws it. Of thousands of
// counters those are kept that say most, each thinned out, so that hundreds of hosts cost a few megabytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "links/judge/samples.h"
#include "links/samples/sample_log.h"

namespace lockstep::verdict {

// On the clock of the counter's host, ns since the epoch.
struct SampledSpan {
  int64_t from_ns = 0, to_ns = 0;
};
struct SeriesPart : SampledSpan {
  uint64_t value = 0;
};

// One counter of one device. What a part's value is:
enum class SeriesKind : uint8_t {
  kFault,    // errors that were seen at `to_ns`
  kSlowed,   // ns for which the GPU was slowed down
  kClock,    // MHz, the lowest
  kTraffic,  // bytes
};
struct LinkSeries {
  SeriesKind kind{};
  std::string host, boot_id;
  std::string device, counter, unit;  // as timelines have them
  std::string says;                   // of an error what it means, of a slowed GPU the reasons; else empty
  // Of the trouble that links/judge sees in it, of traffic in its port; none: no more than healthy links
  // have.
  std::optional<analysis::Severity> severity;
  bool is_at_least = false;          // the counter has stopped at its largest value
  uint64_t total = 0;                // of the parts
  std::vector<SeriesPart> parts;     // ascending, and none overlaps the next; at most 4,096
  std::vector<SampledSpan> sampled;  // when it could be read; likewise
};

struct PickedSeries {
  std::vector<LinkSeries> list;  // by kind, and then those first that say most
  size_t omitted = 0;
};

// Takes logs one after the other, those of a host together and in the order of their starts.
class LinkSeriesPicker {
 public:
  static constexpr size_t kMost = 24;  // of each kind

  // Clocks and traffic are kept of these hosts, and of those with trouble.
  explicit LinkSeriesPicker(std::set<std::string> hosts) : hosts_(std::move(hosts)) {}

  void add(const links::SampleLog& log);
  // After the last log of a host: what it was judged to show.
  void end_host(const links::HostSamples& judged);
  PickedSeries take();

 private:
  std::set<std::string> hosts_;
  std::map<links::CounterKey, LinkSeries> of_host_;
  std::map<SeriesKind, std::vector<LinkSeries>> kept_;
  int64_t last_ns_ = 0;  // of the host's logs so far
  size_t omitted_ = 0;
};

}  // namespace lockstep::verdict
