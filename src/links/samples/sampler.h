// SPDX-License-Identifier: Apache-2.0
// Samples the counters of this host's links once a second into a log of their own
// (links/samples/sample_log.h), beside a job; ten times a second while somebody watches the run.
//
// GPUs of this host are asked through NVML, where it is; of another root they are not.
//
// Bounds: only counters that have changed are written, those of use each ten seconds, from 16 MiB on each
// minute, or a tenth of that. From 48 MiB on these are left out, and at 64 MiB nothing more is written. A
// reading never takes more than a twentieth of the time: where the hardware answers slowly, it is asked less
// often.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "links/nvidia/watched_gpus.h"
#include "links/samples/interface_counters.h"
#include "links/samples/watched_files.h"

namespace lockstep::links {

struct SampleIdentity {
  std::string host, boot_id;
  int64_t pid = 0;
};

// What has changed since the sample before, as lines of a log. No clock, no thread.
class SampleLines {
 public:
  explicit SampleLines(const std::string& root);
  bool is_empty() const { return size() == 0; }
  std::string head(const SampleIdentity& identity, int64_t start_ns) const;
  // Reads all that is due. Empty: nothing has changed, unless it is `always` said.
  std::string sample(int64_t ms, Pace due, bool always);

 private:
  struct Last {
    bool is_written = false, is_known = false;
    uint64_t value = 0;
  };
  // Files, interfaces, and GPUs last: they may have more later.
  size_t before_gpus() const { return files_.size() + (interfaces_ ? interfaces_->size() : 0); }
  size_t size() const { return before_gpus() + (gpus_ ? gpus_->size() : 0); }
  const CounterKey& key(size_t i) const {
    return i < files_.size()   ? files_.key(i)
           : i < before_gpus() ? interfaces_->key(i - files_.size())
                               : gpus_->key(i - before_gpus());
  }
  std::string declaration(size_t i) const;

  WatchedFiles files_;
  std::optional<InterfaceCounters> interfaces_;
  std::optional<nvidia::WatchedGpus> gpus_;
  size_t declared_ = 0;  // counters of which the log has the names
  std::vector<Last> last_;
};

struct SamplerPlaces {
  std::string root;   // that holds sys; "" for this host
  std::string log;    // made anew
  std::string lock;   // held by the one that samples this host for this run; the others wait for it
  std::string watch;  // while another holds it (links/samples/host_lock.h), it is sampled faster
};

// Whether a host has anything that could be sampled: files of links below `root`, or a driver of GPUs of this
// host. Loads nothing.
bool has_links_to_sample(const std::string& root);

// Has a thread of its own with little stack, where one can be started and there is something to read. Nothing
// of it is ever an error for who makes it.
class Sampler {
 public:
  Sampler(SamplerPlaces places, SampleIdentity identity);
  ~Sampler() { stop(); }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  // Takes a last sample and ends the log. Waits no longer than two seconds: a thread that the kernel holds in
  // a reading is left to itself.
  void stop();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace lockstep::links
