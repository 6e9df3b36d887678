// SPDX-License-Identifier: Apache-2.0
// A cell is slow if it is slower than its siblings in both measurements; then, against NCCL's model of the
// path; then against an earlier record. Cells that share an end are named as that end's, cells that are slow
// only together as a hop that they share.
#include <algorithm>
#include <map>
#include <set>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "links/judge/judge.h"
#include "links/judge/siblings.h"
#include "links/judge/words.h"

namespace lockstep::links {
namespace {
using analysis::Finding;
using analysis::FindingId;
using analysis::Severity;

constexpr double kShare = 0.9;

std::string value_text(const Cell& cell, double value) {
  return is_latency(cell.kind) ? format_decimal(value, 0) + " ns" : format_decimal(value, 1) + " GB/s";
}

bool between_gpus(const Cell& cell) { return !cell.from.starts_with("host") && !cell.to.starts_with("host"); }

class Verdict {
 public:
  Verdict(const Traffic& traffic, const Traffic* baseline, const Machine& machine, const OthersUse& others,
          std::vector<Finding>& findings)
      : traffic_(traffic),
        baseline_(baseline),
        machine_(machine),
        others_(others),
        findings_(findings),
        paths_(paths_of(traffic.cells, machine)) {}

  void run() {
    for (size_t i = 0; i < traffic_.cells.size(); ++i) cell(i);
    ends();
    rounds();
    for (const std::string& note : traffic_.notes)
      add(findings_, FindingId::kEvidenceMissingLinks, "not measured: " + wording::name(note, 160),
          machine_.host.name, "");
  }

 private:
  struct Slow {
    size_t cell;
    double expected;      // GB/s or ns
    std::string against;  // "its 55 siblings' median"
    FindingId id;
  };

  // The better of both measurements: what happened once is no property of a link.
  static double best(const Cell& cell) {
    if (cell.again.empty()) return cell.value();
    const double again = median(cell.again);
    return is_latency(cell.kind) ? std::min(cell.value(), again) : std::max(cell.value(), again);
  }

  void cell(size_t i) {
    const Cell& cell = traffic_.cells[i];
    const double value = best(cell);
    if (value <= 0) return;
    // Kernels' copies are measured of suspects alone, unless the measurement is a deep one: they are no fair
    // siblings.
    if (cell.kind != CellKind::kCoreWrite) {
      if (const auto siblings = compare(traffic_.cells, i, paths_);
          siblings && stands_out(cell, value, *siblings))
        return slow_.push_back({i, siblings->siblings,
                                siblings->count == 1
                                    ? "the other direction"
                                    : "the median of its " + std::to_string(siblings->count) + " siblings",
                                FindingId::kSlowLinkSibling}),
               void();
    }
    if (const auto modelled = modelled_rate(cell, machine_); modelled && value < kShare * *modelled)
      return slow_.push_back({i, *modelled, "NCCL's model of the path", FindingId::kSlowLinkModel}), void();
    if (baseline_ == nullptr) return;
    for (const Cell& old : baseline_->cells) {
      if (old.kind != cell.kind || old.from != cell.from || old.to != cell.to || old.round != cell.round)
        continue;
      // A baseline is of the same host, so its cells are the same links; it catches what made all siblings
      // slow.
      const double before = old.value();
      if (before > 0 && (is_latency(cell.kind) ? value > before / kShare : value < before * kShare))
        slow_.push_back({i, before, "the baseline", FindingId::kSlowLinkBaseline});
    }
  }

  // A GPU most of whose cells are slow is one finding; what is left are pairs.
  void ends() {
    std::map<std::string, std::pair<size_t, size_t>> share;  // by GPU: slow and all
    for (const Cell& cell : traffic_.cells)
      if (between_gpus(cell) && cell.kind == CellKind::kWrite)
        for (const std::string& end : {cell.from, cell.to}) ++share[end].second;
    for (const Slow& slow : slow_)
      if (const Cell& cell = traffic_.cells[slow.cell]; between_gpus(cell) && cell.kind == CellKind::kWrite)
        for (const std::string& end : {cell.from, cell.to}) ++share[end].first;
    std::set<std::string> whole;
    size_t most = 0;
    for (const auto& [end, count] : share) most = std::max(most, count.first);
    for (const auto& [end, count] : share)
      // Two thirds of an end's cells, and nobody has more: a slow end makes some cells of each other GPU
      // slow, too.
      if (count.second >= 4 && count.first == most && 3 * count.first >= 2 * count.second) whole.insert(end);
    if (whole.size() > 1 && whole.size() == share.size()) whole.clear();  // all are slow: no end stands out
    std::set<size_t> reported;
    for (const std::string& end : whole) {
      std::vector<const Slow*> of_end;
      for (const Slow& slow : slow_) {
        const Cell& cell = traffic_.cells[slow.cell];
        if (!between_gpus(cell) || (cell.from != end && cell.to != end) || cell.kind == CellKind::kRound)
          continue;
        of_end.push_back(&slow);
        reported.insert(slow.cell);
      }
      add_finding(of_end, device_words(machine_, end) + " moves less than its siblings to and from all GPUs");
    }
    // Both directions and all ways of measuring of a pair are one finding.
    std::map<std::pair<std::string, std::string>, std::vector<const Slow*>> pairs;
    for (const Slow& slow : slow_) {
      const Cell& cell = traffic_.cells[slow.cell];
      if (reported.contains(slow.cell) || cell.kind == CellKind::kRound) continue;
      // The first of the list is the one that is shown: cells are in the order in which they were measured.
      pairs[std::minmax(cell.from, cell.to)].push_back(&slow);
    }
    for (const auto& [pair, slow] : pairs) {
      const Cell& cell = traffic_.cells[slow[0]->cell];
      const double value = best(cell);
      add_finding(slow, place_words(machine_, cell.from) + " to " + place_words(machine_, cell.to) +
                            (is_latency(cell.kind) ? " takes " : " moves ") + value_text(cell, value) +
                            " where " + slow[0]->against + " is " + value_text(cell, slow[0]->expected));
    }
  }

  // A slow cell is no fault of links that somebody else uses meanwhile.
  void blame_others(const std::vector<const Slow*>& slow, Finding& finding) const {
    std::set<std::string> ends;
    for (const Slow* const entry : slow) {
      const Cell& cell = traffic_.cells[entry->cell];
      // One that is slow while nobody else uses its ends says something of the links.
      if (!others_.contains(cell.from) && !others_.contains(cell.to)) return;
      for (const std::string& end : {cell.from, cell.to})
        if (others_.contains(end)) ends.insert(end);
    }
    finding.id = FindingId::kSlowLinkInUse;
    finding.statement += ", while " + place_words(machine_, *ends.begin()) + " " + others_.at(*ends.begin());
    for (const std::string& end : ends)
      finding.evidence.push_back("meanwhile " + place_words(machine_, end) + " " + others_.at(end));
    finding.advice = "Nothing is known against the links: measure again while nobody else uses these GPUs.";
  }

  void add_finding(const std::vector<const Slow*>& slow, std::string statement) {
    if (slow.empty()) return;
    const Cell& first = traffic_.cells[slow[0]->cell];
    // Latency alone costs little; a rate is what a job feels.
    const bool all_latency = std::all_of(slow.begin(), slow.end(), [&](const Slow* entry) {
      return is_latency(traffic_.cells[entry->cell].kind);
    });
    Finding& finding =
        add(findings_, slow[0]->id, std::move(statement), machine_.host.name,
            between_gpus(first)
                ? "Check the errors and the state of the links between them: `nvidia-smi nvlink -e`, `-s`."
                : "Check the PCIe link and the memory's node: `nvidia-smi topo -m`.");
    if (all_latency) finding.severity = Severity::kNote;
    blame_others(slow, finding);
    for (const Slow* const entry : slow) {
      if (finding.evidence.size() >= 12) {
        finding.evidence.push_back("and " + std::to_string(slow.size() - 12) + " others");
        break;
      }
      const Cell& cell = traffic_.cells[entry->cell];
      finding.evidence.push_back(
          place_words(machine_, cell.from) + " to " + place_words(machine_, cell.to) + ", " +
          std::string(kind_text(cell.kind)) + ": " + value_text(cell, cell.value()) +
          (cell.again.empty() ? "" : ", again " + value_text(cell, median(cell.again))) + "; " +
          entry->against + " " + value_text(cell, entry->expected));
    }
    for (const Cell& cell : traffic_.cells)
      if (cell.kind == CellKind::kCoreWrite && cell.from == first.from && cell.to == first.to)
        finding.evidence.push_back("a kernel's copy of the same: " + value_text(cell, cell.value()));
  }

  // Fine alone, slow when all run: they share a hop.
  void rounds() {
    // By round, as only transfers of one round ran together and can have shared anything.
    std::map<int, std::vector<const Slow*>> by_round;
    for (const Slow& slow : slow_) {
      const Cell& cell = traffic_.cells[slow.cell];
      if (cell.kind != CellKind::kRound) continue;
      const bool slow_alone = std::any_of(slow_.begin(), slow_.end(), [&](const Slow& other) {
        const Cell& alone = traffic_.cells[other.cell];
        return alone.kind == CellKind::kWrite && alone.from == cell.from && alone.to == cell.to;
      });
      // A pair that is slow alone is slow in its round as well, and is a finding already.
      if (!slow_alone) by_round[cell.round].push_back(&slow);
    }
    if (by_round.empty()) return;
    std::set<std::string> pairs;
    for (const auto& [round, slow] : by_round)
      for (const Slow* const entry : slow) {
        const Cell& cell = traffic_.cells[entry->cell];
        pairs.insert(place_words(machine_, cell.from) + " to " + place_words(machine_, cell.to) + ": " +
                     value_text(cell, cell.value()) + " while all others send, " +
                     value_text(cell, alone(cell)) + " alone");
      }
    Finding& finding = add(
        findings_, FindingId::kSlowLinkSharedHop,
        wording::count(pairs.size(), "transfer") + " between GPUs that " +
            (pairs.size() == 1 ? "is" : "are") + " fast alone slow down when all GPUs send: they share a hop",
        machine_.host.name,
        "Find the switches or bridges that these pairs have in common: `nvidia-smi topo -m`.");
    for (const std::string& pair : pairs)
      if (finding.evidence.size() < 12) finding.evidence.push_back(pair);
    std::vector<const Slow*> all;
    for (const auto& [round, slow] : by_round) all.insert(all.end(), slow.begin(), slow.end());
    blame_others(all, finding);
  }

  double alone(const Cell& cell) const {
    for (const Cell& other : traffic_.cells)
      if (other.kind == CellKind::kWrite && other.from == cell.from && other.to == cell.to)
        return other.value();
    return 0;
  }

  const Traffic& traffic_;
  const Traffic* const baseline_;
  const Machine& machine_;
  const OthersUse& others_;
  std::vector<Finding>& findings_;
  const std::vector<std::string> paths_;
  std::vector<Slow> slow_;
};

}  // namespace

void judge_traffic(const Traffic& traffic, const Traffic* baseline, const Machine& machine,
                   const OthersUse& others, std::vector<Finding>& findings) {
  Verdict(traffic, baseline, machine, others, findings).run();
}

}  // namespace lockstep::links
