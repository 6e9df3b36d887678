// SPDX-License-Identifier: Apache-2.0
// What the links of a running job's hosts have counted so far, from logs that still grow. One thread.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "links/counters.h"
#include "links/samples/sample_tail.h"

namespace lockstep::readers::link_samples {

struct LiveCounter {
  std::string host, device, name;  // as model::HostCounter has them
  bool is_bytes = false;
  uint64_t total = 0;  // since its first sample; never falls
};

class LiveCounters {
 public:
  static constexpr size_t kMostLogs = 1024, kMostCounters = 262'144;

  // Run directories; other paths have no logs.
  explicit LiveCounters(std::vector<std::string> directories) : directories_(std::move(directories)) {}
  // Reads what was appended. Logs that cannot be read are left for the next look.
  void look();
  // Bytes, and what has risen; by host and counter.
  std::vector<LiveCounter> risen() const;

 private:
  struct Followed {
    explicit Followed(const std::string& path) : tail(path) {}
    links::SampleTail tail;
    std::vector<std::pair<bool, uint64_t>> last;  // by counter: whether one is known, and it
  };
  void find_logs();
  void take(Followed& log);

  std::vector<std::string> directories_;
  std::map<std::string, Followed> logs_;        // by path
  std::map<std::string, std::string> sampled_;  // by host: the path of the log that counts
  std::map<std::pair<std::string, links::CounterKey>, uint64_t> totals_;
};

}  // namespace lockstep::readers::link_samples
