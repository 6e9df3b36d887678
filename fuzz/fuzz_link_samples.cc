// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to the reader of link counters, judges them alone and as two logs of one host, and
// checks that samples go on in time and that what is found has words and times.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "links/judge/samples.h"
#include "verdict/link_evidence.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace links = lockstep::links;
  const auto log = links::parse_sample_log({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!log) return 0;
  for (const links::SampledCounter& counter : log->counters) {
    int64_t last = 0;
    for (const links::Sample& sample : counter.samples) {
      if (sample.ms < last || sample.ms > log->last_ms) std::abort();
      last = sample.ms;
    }
  }
  links::SampleLog later = *log;
  later.start_ns += 1'000'000'000;
  for (const auto& hosts : {links::judge_samples({*log}), links::judge_samples({*log, later})}) {
    for (const links::HostSamples& host : hosts) {
      if (host.host.empty() || host.last_ns < host.first_ns) std::abort();
      for (const links::LinkTrouble& trouble : host.troubles)
        if (trouble.says.empty() || trouble.evidence.empty() || trouble.times_ns.empty()) std::abort();
    }
    std::vector<lockstep::analysis::Finding> findings;
    lockstep::verdict::add_link_evidence(hosts, {}, findings);
    for (const auto& finding : findings)
      if (finding.statement.empty() || finding.advice.empty()) std::abort();
    if (lockstep::verdict::link_samples_sentence(hosts).empty()) std::abort();
  }
  return 0;
}
