// SPDX-License-Identifier: Apache-2.0
// The same bounds as judge() has, so that a fact is a trouble exactly where `lockstep links` would report it.
#include "links/judge/facts.h"

#include <algorithm>
#include <initializer_list>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/counters.h"
#include "links/judge/rules.h"
#include "links/judge/siblings.h"
#include "links/judge/state_rules.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {

using analysis::FindingId;

constexpr size_t kMostLinesOfFact = 3;

class Facts {
 public:
  explicit Facts(const LinksRecord& record)
      : record_(record), machine_(machine_of(record.before.files, record.before.gpus)) {}

  LinkFacts take(const LinksRecord* baseline) {
    if (baseline != nullptr) add_risen(*baseline);
    for (const Nic& nic : machine_.nics)
      for (const Port& port : nic.ports) add_port(nic, port);
    for (const Nic& nic : machine_.nics)
      for (const NetDevice& net : nic.net) add_interface(nic, net);
    for (const Gpu& gpu : machine_.gpus) add_nvlinks(gpu);
    if (record_.traffic) paths_ = paths_of(record_.traffic->cells, machine_);
    if (record_.traffic)
      for (size_t i = 0; i < record_.traffic->cells.size(); ++i) add_pair(i);
    for (const Gpu& gpu : machine_.gpus) {
      add_gpu(gpu);
      add_nearest(gpu);
      if (!gpu.uuid.empty()) out_.uuids.push_back(gpu.uuid);
    }
    out_.host = machine_.host.name;
    return std::move(out_);
  }

 private:
  LinkFact& add_fact(LinkFact::Of of, std::string device, std::string name, std::string words) {
    LinkFact& fact = out_.facts.emplace_back();
    fact.of = of;
    fact.device = std::move(device);
    fact.name = std::move(name);
    fact.words = std::move(words);
    if (const auto lines = record_.lines_of.find(fact.device); lines != record_.lines_of.end())
      for (const uint32_t number : lines->second) add_line(number, fact);
    return fact;
  }
  void add_line(uint32_t number, LinkFact& fact) const {
    const auto line = record_.lines.find(number);
    if (line != record_.lines.end() && fact.lines.size() < kMostLinesOfFact)
      fact.lines.push_back(std::to_string(number) + ": " + wording::name(line->second, 160));
  }

  // Rules that allow for a rate are asked only where the time between the two is known.
  void add_risen(const LinksRecord& old) {
    const double seconds =
        old.before.time_ns > 0 ? static_cast<double>(record_.before.time_ns - old.before.time_ns) / 1e9 : 0;
    const Increases all =
        increases(counters_of(machine_of(old.before.files, old.before.gpus)), counters_of(machine_));
    for (const Rule& rule : rules())
      for (const auto& [key, increase] : all) {
        // Congestion is no fault of a link. Other kinds of devices have no fact that this could stand in.
        if (!is_fault(rule) || !matches(rule, key) || increase.amount == 0 ||
            (key.kind != DeviceKind::kPort && key.kind != DeviceKind::kGpu) ||
            (rule.per_second > 0 &&
             (seconds <= 0 || static_cast<double>(increase.amount) <= rule.per_second * seconds)))
          continue;
        const bool is_port = key.kind == DeviceKind::kPort;
        LinkFact& fact = add_fact(is_port ? LinkFact::Of::kPort : LinkFact::Of::kNvlinks, key.device,
                                  is_port ? key.device.substr(0, key.device.find('/')) : key.device,
                                  is_port ? key.device : place_words(machine_, key.device));
        fact.says = "has errors that rose since an earlier check: " + std::string(rule.says) + " (" +
                    key.name + ": +" + (increase.is_at_least ? "at least " : "") +
                    format_count(increase.amount) + ")";
        fact.finding = rule.finding;
        fact.remedy = rule.remedy;
      }
  }

  void add_port(const Nic& nic, const Port& port) {
    if (nic.is_efa) return;  // its port always calls itself active
    LinkFact& fact = add_fact(LinkFact::Of::kPort, nic.name + "/" + std::to_string(port.number), nic.name,
                              nic.name + "/" + std::to_string(port.number));
    if (port.state.empty() && port.physical_state.empty()) {
      add_counted(DeviceKind::kPort, {&port.counters, &port.hw_counters}, fact);
    } else if (const auto inactive = inactive_words(nic, port)) {
      fact.says = *inactive;
      fact.finding = FindingId::kSlowNicPort;
      fact.remedy = "Check the cable and the switch's port.";
    } else if (const auto slow = slow_words(machine_, nic, port)) {
      fact.says = *slow;
      fact.finding = FindingId::kSlowNicRate;
      fact.remedy = kSlowRateAdvice;
    } else {
      fact.says = "is active" + (port.gigabits ? ", at " + format_decimal(*port.gigabits, 0) + " Gb/s" : "");
    }
  }

  // Of interfaces with counters alone: the state of others is that of their card's port.
  void add_interface(const Nic& nic, const NetDevice& net) {
    if (!net.state.empty() || net.statistics.empty()) return;
    add_counted(DeviceKind::kNetDevice, {&net.statistics},
                add_fact(LinkFact::Of::kPort, net.name, nic.name, net.name));
  }

  // Of a device whose counters alone are known. They may be months old, and some rise on healthy links.
  static void add_counted(DeviceKind kind,
                          std::initializer_list<const std::map<std::string, uint64_t>*> of_device,
                          LinkFact& fact) {
    std::string counted;
    for (const auto* const counters : of_device)
      for (const auto& [name, count] : *counters)
        for (const Rule& rule : rules()) {
          if (count == 0 || !is_fault(rule) || !matches(rule, {kind, fact.device, name})) continue;
          counted += (counted.empty() ? "" : ", ") + format_count(count) + ' ' + wording::name(name);
          if (rule.per_second > 0) continue;
          fact.finding = FindingId::kTransportErrorSinceBoot;
          fact.remedy = "Print the counters once more, after the job has run again: do they rise?";
        }
    fact.has_state = false;
    fact.says = counted.empty() ? "has counted no errors" : "has counted, at an unknown time: " + counted;
  }

  void add_gpu(const Gpu& gpu) {
    if (gpu.pci.empty() || (!gpu.throttle_reasons && !gpu.remap_failed)) return;
    const std::string name = "GPU " + std::to_string(gpu.index);
    LinkFact& fact = add_fact(LinkFact::Of::kGpu, gpu.pci, name, name + " (" + gpu.pci + ")");
    if (gpu.remap_failed.value_or(0) > 0 || gpu.remap_pending.value_or(0) > 0) {
      fact.says = gpu.remap_failed.value_or(0) > 0 ? "has memory that could not be remapped"
                                                   : "has memory that is remapped at the next reset";
      fact.finding = FindingId::kGpuLateMemory;
      fact.remedy =
          gpu.remap_failed.value_or(0) > 0 ? "Replace the GPU." : "Reset the GPU when the job has ended.";
    } else if (const std::string reasons = throttle_words(gpu.throttle_reasons.value_or(0));
               !reasons.empty()) {
      fact.says = "is slowed down: " + reasons;
      fact.finding = FindingId::kGpuLateThrottled;
      fact.remedy = "Check cooling and power of this host.";
    } else {
      fact.says = "was not slowed down when it was asked";
    }
  }

  void add_nvlinks(const Gpu& gpu) {
    if (gpu.links.empty() || gpu.pci.empty()) return;
    const std::string name = "GPU " + std::to_string(gpu.index);
    LinkFact& fact = add_fact(LinkFact::Of::kNvlinks, gpu.pci, name, name);
    const size_t down = down_links(gpu), least = unconnected_links(machine_);
    std::map<std::string, uint64_t> errors;
    bool is_known = false;
    for (const GpuLink& link : gpu.links) {
      is_known |= link.is_up.has_value();
      for (const auto& [kind, count] : link.errors) errors[kind] += count;
    }
    std::string counted;
    for (const auto& [kind, count] : errors)
      if (count > 0) counted += (counted.empty() ? "" : ", ") + format_count(count) + ' ' + kind;
    if (down > least) {
      fact.says = "has " + wording::count(down, "NVLink") + " of " + std::to_string(gpu.links.size()) +
                  " down, its siblings " + std::to_string(least);
      fact.finding = FindingId::kSlowLinkNvlinkDown;
      fact.remedy = "Reset the GPU; if the links stay down, drain the host.";
    }
    if (!counted.empty()) {
      // They may be months old, and a few CRC errors are of no meaning.
      fact.says += (fact.says.empty() ? "has" : "; it has") +
                   std::string(" counted errors of NVLinks, at an unknown time: ") + counted;
      if (errors["replay"] > 0 || errors["recovery"] > 0) {
        if (!fact.finding) fact.finding = FindingId::kTransportErrorSinceBoot;
        if (fact.remedy.empty())
          fact.remedy = "Print the errors once more, after the job has run again: do they rise?";
      }
    }
    if (fact.says.empty())
      fact.says = is_known ? "has " + wording::count(gpu.links.size() - down, "NVLink") + " up" +
                                 (errors.empty() ? "" : ", without errors")
                           : "has no errors of NVLinks";
  }

  void add_pair(size_t i) {
    const std::vector<Cell>& cells = record_.traffic->cells;
    const Cell& cell = cells[i];
    if ((cell.kind != CellKind::kWrite && cell.kind != CellKind::kRead) || cell.samples.empty() ||
        cell.from.empty())
      return;
    const auto siblings = compare(cells, i, paths_);
    if (!siblings) return;
    LinkFact& fact = add_fact(LinkFact::Of::kPair, cell.from, place_words(machine_, cell.from),
                              place_words(machine_, cell.from) + " to " + place_words(machine_, cell.to));
    fact.to = cell.to;
    fact.lines.clear();  // those of the GPU
    if (cell.line != 0) add_line(cell.line, fact);
    // The better of two measurements: what was slow once may have been a disturbance.
    const double value = cell.again.empty() ? cell.value() : std::max(cell.value(), median(cell.again));
    fact.says =
        "moves " + format_decimal(value, 1) + " GB/s (" + std::string(kind_text(cell.kind)) + "), " +
        (siblings->count == 1 ? "the other direction "
                              : "the median of its " + std::to_string(siblings->count) + " siblings ") +
        format_decimal(siblings->siblings, 1) + " GB/s";
    if (!stands_out(cell, value, *siblings)) return;
    fact.finding = FindingId::kSlowLinkSibling;
    fact.remedy = "Check the errors and the state of the links between them: `nvidia-smi nvlink -e`, `-s`.";
  }

  void add_nearest(const Gpu& gpu) {
    // Nearest are cards that share a switch with the GPU. Behind the host bridge all are equally far.
    Path best = Path::kHostBridge;
    for (const Nic& nic : machine_.nics)
      if (const Path path = path_between(machine_, gpu.pci, nic.pci); path != Path::kUnknown && path < best)
        best = path;
    if (best == Path::kHostBridge) return;  // none is below one root port with it
    for (const Nic& nic : machine_.nics)
      if (path_between(machine_, gpu.pci, nic.pci) == best) out_.nearest[gpu.pci].insert(nic.name);
  }

  const LinksRecord& record_;
  const Machine machine_;
  std::vector<std::string> paths_;  // of the cells
  LinkFacts out_;
};

}  // namespace

LinkFacts facts_of(const LinksRecord& record, const LinksRecord* baseline) {
  return Facts(record).take(baseline);
}

bool is_earlier(const LinksRecord& a, const LinksRecord& b) {
  const Machine first = machine_of(a.before.files, a.before.gpus),
                second = machine_of(b.before.files, b.before.gpus);
  // With a boot id of either, both must have the same one: counters begin anew with each boot.
  if (!first.host.boot_id.empty() || !second.host.boot_id.empty())
    return first.host.boot_id == second.host.boot_id && a.before.time_ns < b.before.time_ns;
  if (first.gpus.empty() || first.gpus.size() != second.gpus.size()) return false;
  for (size_t i = 0; i < first.gpus.size(); ++i)
    if (first.gpus[i].uuid.empty() || first.gpus[i].uuid != second.gpus[i].uuid) return false;
  const Counters before = counters_of(first), after = counters_of(second);
  bool has_risen = false;
  // Counters never fall within a boot: one that has fallen says that the order is the other one, or no order.
  for (const auto& [key, value] : before) {
    const auto then = after.find(key);
    if (then == after.end() || then->second < value) return false;
    has_risen |= then->second > value;
  }
  return has_risen;
}

}  // namespace lockstep::links
