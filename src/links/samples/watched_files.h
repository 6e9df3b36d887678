// SPDX-License-Identifier: Apache-2.0
// The files of a host that show its links while a job runs (links/samples/sampled.def), found once and
// then read again and again. Those of the kernel's own file system are kept open, up to a quarter of the
// files that this process may have open: reading one again costs one call. One thread. What cannot be read is
// no error, and is tried anew each time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "links/counters.h"
#include "links/samples/pace.h"

namespace lockstep::links {

class WatchedFiles {
 public:
  // Of the host whose root is `root`: "" for this one. A network card that appears later is not seen. At most
  // 4,096 files.
  explicit WatchedFiles(const std::string& root);
  ~WatchedFiles();
  WatchedFiles(const WatchedFiles&) = delete;
  WatchedFiles& operator=(const WatchedFiles&) = delete;

  size_t size() const { return files_.size(); }
  const CounterKey& key(size_t i) const { return files_[i].key; }
  Pace pace(size_t i) const { return files_[i].pace; }
  std::optional<uint64_t> read(size_t i);

  // Paths in the PCI tree: "pci0000:10/0000:10:01.0/0000:12:00.0"; by name, and of GPUs by address.
  const std::map<std::string, std::string>& cards() const { return cards_; }
  const std::map<std::string, std::string>& gpus() const { return gpus_; }

 private:
  struct File {
    CounterKey key;
    std::string path;
    Pace pace = Pace::kSecond;
    int fd = -1;
  };
  void find_ports();
  void find_interfaces();
  void find_pci();
  void add_all(DeviceKind kind, const std::string& device, const std::string& folder);
  void add(DeviceKind kind, const std::string& device, const std::string& name, const std::string& path,
           Pace pace);

  const std::string root_;
  size_t most_open_ = 0, open_ = 0;
  std::vector<File> files_;
  std::map<std::string, std::string> cards_, gpus_;
};

}  // namespace lockstep::links
