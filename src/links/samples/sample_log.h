// SPDX-License-Identifier: Apache-2.0
// What the counters of a host's links were while a job ran: RUN/links.<host>.<pid>.log. Text, one statement a
// line, appended by one process and readable while it grows. A statement counts once its line end is there;
// words that are not known are passed over.
//
//   lockstep link samples 2                      the version; 1: without GPUs
//   host node3
//   boot 0f3c52a1...                             as process files have it
//   pid 4711                                     of the launcher that samples
//   start 1764100000123456789                    ns since the Unix epoch at moment 0
//   card mlx5_0 pci0000:10/0000:10:01.0/0000:12:00.0    where a network card or an interface is in the PCI
//                                                       tree
//   gpu 0000:1b:00.0 pci0000:10/0000:10:01.1/0000:1b:00.0
//   counter 0 port mlx5_0/1 link_downed          its number, from 0 in order; kinds: port nic net pci
//                                                       gpu; some are added later
//   at 0 0=3 1=0                                 ms of CLOCK_BOOTTIME since moment 0, and the counters that
//                                                have changed
//   at 7003 0=4 1=-                              -: it could not be read
//   full                                         the file has reached its bound: what follows is not in it
//   end                                          the sampler was stopped in order
//
// `state` is the number that the driver gives (4: active), `rate` in Mb/s; all others are raw
// (links/counters.def, links/nvidia/watched_gpus.h).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "links/counters.h"

namespace lockstep::links {

inline constexpr std::string_view kSampleLogHead = "lockstep link samples ";
inline constexpr int kSampleLogVersion = 2;

struct Sample {
  int64_t ms = 0;  // since the log's start
  uint64_t value = 0;
  bool is_known = false;  // it could be read
};

struct SampledCounter {
  CounterKey key;
  // Those that differ from the one before, and all of what is read seldom; ascending in time.
  std::vector<Sample> samples;
};

struct SampleLog {
  std::string host, boot_id;
  int64_t pid = 0, start_ns = 0;
  int64_t last_ms = 0;  // the newest sample, whether or not anything had changed
  bool has_ended = false, is_full = false;
  uint64_t damaged = 0;                            // lines that mean nothing
  std::vector<SampledCounter> counters;            // by number
  std::map<std::string, std::string> cards, gpus;  // by name, and by PCI address: the path in the PCI tree

  int64_t time_ns(int64_t ms) const { return start_ns + ms * 1'000'000; }
};

// `state`, `rate`, a GPU's clock: they say how it is, not how often something was.
bool is_gauge(const CounterKey& key);

std::string_view kind_word(DeviceKind kind);  // "port"

// An error unless it is the first line of a log that this program reads.
Result<void> check_sample_head(std::string_view line, const std::string& where);
// Any other line, of a log that is read piece by piece.
void parse_sample_line(std::string_view line, SampleLog& log);
// `where` names it in errors. Bounded by the text: 65,536 counters, 16 million samples.
Result<SampleLog> parse_sample_log(std::string_view text, const std::string& where);
Result<SampleLog> read_sample_log(const std::string& path);
// Its first lines alone: whose it is, and when it began.
Result<SampleLog> read_sample_log_head(const std::string& path);

}  // namespace lockstep::links
