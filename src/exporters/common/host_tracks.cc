// SPDX-License-Identifier: Apache-2.0
#include "exporters/common/host_tracks.h"

#include <algorithm>
#include <cmath>

namespace lockstep::exporters::common {
namespace {

using Value = model::HostCounter::Value;

// How far apart readings are; 0: too few changes to know. Readings are at equal distances, and a counter in
// use changes from one to the next, so most changes are one reading apart.
int64_t usual_distance(const std::vector<Value>& values) {
  if (values.size() < 4) return 0;
  std::vector<int64_t> distances;
  for (size_t i = 1; i < values.size(); ++i) distances.push_back(values[i].time_ns - values[i - 1].time_ns);
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return *middle;
}

void put(int64_t time_ns, int64_t value, std::vector<CounterValue>& to) {
  if (to.empty() || to.back().value != value) to.push_back({time_ns, value});
}

bool is_always_drawn(const model::HostCounter& counter) {
  return counter.kind == "gpu" && counter.is_gauge && counter.unit != "bits";
}

}  // namespace

std::vector<CounterValue> rate_of(const model::HostCounter& counter) {
  std::vector<CounterValue> rates;
  const std::vector<Value>& values = counter.values;
  const int64_t usual = usual_distance(values);
  for (size_t i = 1; i < values.size(); ++i) {
    int64_t start = values[i - 1].time_ns;
    const int64_t end = values[i].time_ns;
    if (end <= start) continue;
    if (usual > 0 && end - start > usual + usual / 2) {
      put(start, 0, rates);
      start = end - usual;
    }
    // Bytes in a nanosecond are GB/s.
    const double rate =
        static_cast<double>(values[i].value - values[i - 1].value) / static_cast<double>(end - start);
    put(start, static_cast<int64_t>(std::llround(std::min(rate, 1e6) * 1e3)), rates);
  }
  if (!rates.empty()) put(values.back().time_ns, 0, rates);
  return rates;
}

HostTrack::HostTrack(const model::HostCounter& from)
    : host(from.host + ": links and GPUs"),
      name(from.device + " " + from.name),
      unit(from.unit == "bytes" ? "GB/s"
           : from.unit == "mW"  ? "W"
                                : from.unit) {
  counter.name = name;
  counter.unit = unit;
  if (from.values.empty() || (from.values.size() == 1 && !is_always_drawn(from))) return;
  if (from.unit == "bytes") {
    counter.in_thousandths = true;
    counter.values = rate_of(from);
    return;
  }
  counter.in_thousandths = from.unit == "mW";
  for (const Value& at : from.values)
    counter.values.push_back({at.time_ns, static_cast<int64_t>(std::min<uint64_t>(at.value, INT64_MAX))});
}

}  // namespace lockstep::exporters::common
