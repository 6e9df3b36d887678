// SPDX-License-Identifier: Apache-2.0
// Puts the parts of a judgement into the order of their strength: states, paths and settings, measured
// traffic, counters that rose, and what could not be seen. Each part takes the reading that it is true of.
// States come from the reading under load if there is one, counters from before and after our own traffic.
#include "links/judge/judge.h"

#include <algorithm>

#include "base/text/wording.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {

// What would let the traffic be measured: of GPUs alone that are at work it is to wait.
std::string wanted_for_traffic(const GpuFacts& facts, const Machine& machine) {
  if (facts.gpus.empty() && !machine.gpus.empty())
    return "a benchmark of their vendor: Lockstep measures links of NVIDIA's GPUs alone";
  if (facts.gpus.empty())
    return "a GPU and its driver: nvidia-smi must list it here, and in a container its libraries must be "
           "there (--gpus all)";
  if (std::any_of(facts.gpus.begin(), facts.gpus.end(), is_at_work))
    return "the same command while the GPUs are idle; --checks measures nothing";
  return "the same command once the cause is gone; --checks measures nothing";
}

}  // namespace

std::vector<analysis::Finding> judge(const LinksRecord& record, const LinksRecord* baseline) {
  std::vector<analysis::Finding> findings;
  const Machine machine = machine_of(record.before.files, record.before.gpus);
  // Clocks and PCIe speeds are those of work only while there is some.
  if (record.under_load)
    judge_state(machine_of(record.under_load->files, record.under_load->gpus), true, findings);
  else
    judge_state(machine, false, findings);
  judge_paths(machine, findings);
  // What another tool printed says nothing of them: a module that it does not list may be loaded.
  if (record.scope.empty()) judge_settings(machine, findings);
  if (record.traffic)
    judge_traffic(*record.traffic, baseline != nullptr && baseline->traffic ? &*baseline->traffic : nullptr,
                  machine, used_by_others(record), findings);
  if (!record.traffic_absent.empty())
    add(findings, analysis::FindingId::kEvidenceMissingLinksTraffic,
        "link traffic was not measured, only states, settings and error counters were checked: " +
            wording::name(record.traffic_absent, 240),
        machine.host.name, "")
        .needed_evidence = wanted_for_traffic(record.before.gpus, machine);
  // Our own traffic is the load: what rises during it rises under load.
  const Counters before = counters_of(machine);
  if (record.after) {
    const Counters after = counters_of(machine_of(record.after->files, record.after->gpus));
    judge_increases(increases(before, after),
                    static_cast<double>(record.after->time_ns - record.before.time_ns) / 1e9,
                    machine.host.name, findings);
  }
  const Machine old =
      baseline == nullptr ? Machine() : machine_of(baseline->before.files, baseline->before.gpus);
  // Counters begin anew with each boot: only within one do two records compare.
  if (baseline != nullptr && !old.host.boot_id.empty() && old.host.boot_id == machine.host.boot_id)
    judge_increases(increases(counters_of(old), before),
                    static_cast<double>(record.before.time_ns - baseline->before.time_ns) / 1e9,
                    machine.host.name, findings);
  else
    judge_totals(before, machine.host.name, findings);
  // What another tool printed covers a part of the host only: nothing else of it is called missing.
  if (record.scope.empty())
    judge_visibility(machine, record.before.gpus, findings);
  else
    add(findings, analysis::FindingId::kEvidenceMissingLinks, record.scope, machine.host.name, "")
        .needed_evidence = "lockstep links on the host itself";
  return findings;
}

}  // namespace lockstep::links
