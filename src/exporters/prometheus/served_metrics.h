// SPDX-License-Identifier: Apache-2.0
// What scrapes get: the families that were handed over last, and how long ago that was. Of any thread.
#pragma once
#include <prometheus/metric_family.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::exporters::metrics {

struct Address {
  std::string host;   // numeric, without brackets
  uint16_t port = 0;  // 0: any that is free
  bool loopback = false;
};
// "127.0.0.1:9464", "[::1]:0", ":9464" (this machine only).
Result<Address> parse_address(std::string_view text);

class ServedMetrics {
 public:
  void set(const std::vector<prometheus::MetricFamily>& families);
  // In Prometheus' text format; nullptr before the first set().
  std::shared_ptr<const std::string> text() const;

 private:
  using Clock = std::chrono::steady_clock;
  mutable std::mutex mutex_;
  std::shared_ptr<const std::string> text_;
  Clock::time_point set_at_;
};

}  // namespace lockstep::exporters::metrics
