// SPDX-License-Identifier: Apache-2.0
// What the counters of hosts' links and GPUs show that were sampled beside a job: what rose or changed while
// it ran. A counter alone is never more than possible; who knows the job's operations and logs may say more
// (verdict/link_evidence.h).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "links/samples/sample_log.h"

namespace lockstep::links {

struct LinkTrouble {
  analysis::FindingId id{};
  std::string device;  // "mlx5_0/1", "eth0", "0000:1b:00.0"
  std::string card;    // its path in the PCI tree, as SampleLog::cards has it; empty unknown
  analysis::Severity severity = analysis::Severity::kNote;
  std::string says, remedy;
  std::vector<std::string> evidence;  // one line a counter
  std::vector<int64_t> times_ns;      // when it rose, on the host's clock, ascending; of very many the first
  std::optional<bool>
      moved_data;  // its card, while the job ran; nothing: not known, or seen up for less than a minute
};

struct HostSamples {
  std::string host, boot_id;
  int64_t first_ns = 0, last_ns = 0;               // what the samples span
  size_t watched = 0;                              // devices of which a counter of errors could be read
  size_t unreadable = 0;                           // devices of which none could
  bool is_full = false;                            // a log reached its bound
  std::map<std::string, std::string> cards, gpus;  // as SampleLog has them
  std::vector<LinkTrouble> troubles;
  std::vector<LinkTrouble> gpu_troubles;      // of GPUs themselves: low clocks, memory errors, Xids
  std::map<std::string, uint64_t> sm_clocks;  // MHz, by PCI address: the median over the last log
  std::vector<std::string> congestion;        // lines: no fault of a link
  std::vector<LinkTrouble> uses;              // of ports, likewise: full links, small packets; notes
  // Bytes that were sent by an RDMA card, by its name; that went over a GPU's NVLinks both ways, by PCI
  // address. Only what was read twice at least.
  std::map<std::string, uint64_t> sent, nvlink_moved;
};

// One log after the other, so that no more than one is in memory: those of a host together, in the order of
// their starts. One that lies within another's time is left aside, as both read the same counters.
class SamplesJudge {
 public:
  // False: it was left aside.
  bool add(const SampleLog& log);
  const std::vector<HostSamples>& hosts() const { return hosts_; }  // so far
  std::vector<HostSamples> take() { return std::move(hosts_); }     // by host

 private:
  std::vector<HostSamples> hosts_;
};

// Of logs in any order.
std::vector<HostSamples> judge_samples(const std::vector<SampleLog>& logs);

}  // namespace lockstep::links
