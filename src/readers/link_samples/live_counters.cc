// SPDX-License-Identifier: Apache-2.0
// Logs are followed by their names, so that a restarted launcher's log is found while the old one is kept.
#include "readers/link_samples/live_counters.h"

#include <filesystem>
#include <string_view>

#include "readers/link_samples/shown_counter.h"

namespace lockstep::readers::link_samples {

namespace fs = std::filesystem;

void LiveCounters::look() {
  find_logs();
  for (auto& [path, log] : logs_) {
    bool is_more = true;
    while (is_more) {
      const auto read = log.tail.read();
      is_more = read && *read;
      if (!read) break;
      const std::string& host = log.tail.log().host;
      if (host.empty()) continue;
      // Two samplers of a host read the same counters. The next one counts once the first has ended.
      auto [at, is_new] = sampled_.try_emplace(host, path);
      if (at->second != path && logs_.at(at->second).tail.log().has_ended) at->second = path;
      if (at->second == path) take(log);
    }
  }
}

void LiveCounters::find_logs() {
  for (const std::string& directory : directories_) {
    std::error_code error;
    for (fs::directory_iterator at(directory, fs::directory_options::skip_permission_denied, error), end;
         !error && at != end && logs_.size() < kMostLogs; at.increment(error)) {
      const std::string name = at->path().filename();
      if (name.starts_with("links.") && name.ends_with(".log"))
        logs_.try_emplace(at->path().string(), at->path().string());
    }
  }
}

void LiveCounters::take(Followed& log) {
  const links::SampleLog& now = log.tail.log();
  log.last.resize(now.counters.size());
  for (size_t i = 0; i < now.counters.size(); ++i) {
    const links::SampledCounter& counter = now.counters[i];
    if (links::is_gauge(counter.key)) continue;
    const auto key = std::pair(now.host, counter.key);
    for (const links::Sample& sample : counter.samples) {
      if (!sample.is_known) continue;
      auto& [is_known, last] = log.last[i];
      const uint64_t amount = is_known ? links::increase_of(counter.key.name, last, sample.value).amount : 0;
      if (totals_.size() < kMostCounters || totals_.contains(key))
        totals_[key] += amount * shown(counter.key.name).factor;
      is_known = true;
      last = sample.value;
    }
  }
}

std::vector<LiveCounter> LiveCounters::risen() const {
  std::vector<LiveCounter> found;
  for (const auto& [key, total] : totals_) {
    const Shown how = shown(key.second.name);
    const bool is_bytes = how.unit == "bytes";
    if (is_bytes || total > 0)
      found.push_back({key.first, key.second.device, std::string(how.name), is_bytes, total});
  }
  return found;
}

}  // namespace lockstep::readers::link_samples
