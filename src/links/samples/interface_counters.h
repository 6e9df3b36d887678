// SPDX-License-Identifier: Apache-2.0
// Counters that drivers of network interfaces keep and no file shows (`ethtool -S`), asked of the kernel
// again and again. One call gives all of an interface's, and may take a millisecond: each ten seconds. An
// interface that has none of those below is not asked again. One thread; only asks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "links/counters.h"

namespace lockstep::links {

class InterfaceCounters {
 public:
  // Gives the kernel a command of its ethtool interface for an interface; false: it was refused.
  using Ask = std::function<bool(const std::string& interface, void* command)>;
  static Ask of_this_host();
  InterfaceCounters(const std::vector<std::string>& interfaces, Ask ask);

  size_t size() const { return keys_.size(); }
  const CounterKey& key(size_t i) const { return keys_[i]; }
  using Visit = std::function<void(size_t, std::optional<uint64_t>)>;
  void read(const Visit& visit);

 private:
  struct Interface {
    std::string name;
    std::vector<std::string> statistics;   // as the driver numbers them
    std::map<std::string, size_t> wanted;  // by name, the number of the counter here
  };
  std::optional<uint32_t> count_of(const std::string& interface) const;
  std::vector<std::string> names_of(const std::string& interface) const;

  const Ask ask_;
  std::vector<Interface> interfaces_;
  std::vector<CounterKey> keys_;
  std::vector<uint64_t> buffer_;
};

}  // namespace lockstep::links
