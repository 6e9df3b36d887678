// SPDX-License-Identifier: Apache-2.0
// Points of all processes are sorted once, at the end: by operation, then by time, so that an arrow leads
// from the first rank to the last. That costs O(n log n) for n points. Sorting by process and thread as well
// keeps the output the same from run to run.
#include "exporters/chrome_json/flows.h"

#include <algorithm>
#include <tuple>

namespace lockstep::exporters::chrome_json {

uint64_t Flows::write(JsonWriter& json, int64_t base_ns) {
  std::sort(points_.begin(), points_.end(), [](const Point& a, const Point& b) {
    return std::tie(a.key, a.time_ns, a.pid, a.tid) < std::tie(b.key, b.time_ns, b.pid, b.tid);
  });
  uint64_t events = 0, id = 0;
  for (size_t first = 0, last = 0; first < points_.size(); first = last) {
    while (last < points_.size() && points_[last].key == points_[first].key) ++last;
    // One rank alone recorded it: there is nobody to point to.
    if (last - first < 2) continue;
    ++id;
    for (size_t i = first; i < last; ++i) {
      const Point& point = points_[i];
      // The format begins a flow with `s`, goes on with `t` and ends with `f`; `bp: e` binds each to its
      // enclosing slice.
      json.event(i == first      ? "{\"ph\":\"s\""
                 : i + 1 == last ? "{\"ph\":\"f\",\"bp\":\"e\""
                                 : "{\"ph\":\"t\",\"bp\":\"e\"");
      json.raw(",\"cat\":\"ranks\",\"name\":\"same operation\",\"id\":").number(id);
      json.raw(",\"pid\":").signed_number(point.pid).raw(",\"tid\":").signed_number(point.tid);
      json.raw(",\"ts\":").micros(point.time_ns - base_ns).raw("}");
      ++events;
    }
  }
  return events;
}

}  // namespace lockstep::exporters::chrome_json
