// SPDX-License-Identifier: Apache-2.0
// Arrows that link one operation across ranks. Which rank came first is only known at the end, so the points
// are kept: 32 bytes for each operation of the run, the one thing here that grows with it (a timeline of it
// takes 2 KiB).
#pragma once
#include <cstdint>
#include <vector>

#include "exporters/chrome_json/json_writer.h"

namespace lockstep::exporters::chrome_json {

class Flows {
 public:
  // A place inside a slice that belongs to the operation. Equal keys are one operation.
  void add(uint64_t key, int64_t time_ns, int64_t pid, int64_t tid) {
    points_.push_back({key, time_ns, pid, tid});
  }
  // Writes s, t ..., f of each operation that has at least two points, in time order. Returns the events
  // written.
  uint64_t write(JsonWriter& json, int64_t base_ns);

 private:
  struct Point {
    uint64_t key;
    int64_t time_ns;
    int64_t pid, tid;
  };
  std::vector<Point> points_;
};

}  // namespace lockstep::exporters::chrome_json
