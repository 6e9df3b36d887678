// SPDX-License-Identifier: Apache-2.0
// Prints findings in order of severity, then notes, matrices of pairs, host memory and devices. The order is
// that of use: what is wrong, what may be, and then the figures to check it. Measured tables are left out
// where nothing was measured.
#include <algorithm>
#include <tuple>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
#include "cli/kit/table.h"
#include "cli/links/report.h"
#include "links/judge/siblings.h"
#include "links/judge/words.h"
#include "verdict/outcome.h"

namespace lockstep::cli::links {
namespace {
using namespace lockstep::links;
using analysis::Finding;
using analysis::Severity;

constexpr size_t kLines = 4;  // of evidence, in a report that is not verbose

class Report {
 public:
  Report(const LinksRecord& record, const analysis::Diagnosis& diagnosis, const Style& style, bool verbose)
      : record_(record),
        machine_(machine_of(record.before.files, record.before.gpus)),
        paths_(record.traffic ? paths_of(record.traffic->cells, machine_) : std::vector<std::string>()),
        diagnosis_(diagnosis),
        style_(style),
        verbose_(verbose) {}

  std::string text() {
    headline();
    for (const Finding& finding : diagnosis_.findings)
      // Notes follow under a heading of their own, without taking the first screen.
      if (finding.severity != Severity::kNote) print_finding(finding);
    notes();
    matrix(CellKind::kWrite, "GPU to GPU, GB/s: the row's GPU writes to the column's GPU");
    matrix(CellKind::kBothWays, "The same, while the other direction is busy too");
    matrix(CellKind::kLatency, "Latency of one load from the column's memory, ns");
    if (verbose_) matrix(CellKind::kRead, "The column's GPU reads, GB/s");
    host_table();
    devices();
    return std::move(out_);
  }

 private:
  void line(const std::string& text, size_t indent = 0) {
    // Lines that go on stand below the text, not below its mark.
    const bool is_item = text.starts_with("* ") || text.starts_with("- ");
    const size_t mark = is_item ? 2 : 0;
    out_ += std::string(indent, ' ') + text.substr(0, mark) +
            wrap(text.substr(mark), indent + mark, style_.columns()) + '\n';
  }
  void heading(const std::string& text) { out_ += '\n' + style_.heading(text) + '\n'; }

  void headline() {
    std::string seen = wording::count(machine_.gpus.size(), "GPU");
    if (!machine_.gpus.empty() && !machine_.gpus[0].name.empty())
      seen += " (" + wording::name(machine_.gpus[0].name) + ")";
    seen += ", " + wording::count(machine_.nics.size(), "network card") + ", " +
            wording::count(machine_.pci.size(), "PCI device");
    if (record_.traffic)
      // What another tool printed does not tell how long it took.
      seen += "; " + wording::count(record_.traffic->cells.size(), "measurement") +
              (record_.traffic->seconds > 0 ? " in " + format_duration(record_.traffic->seconds * 1e9) : "");
    else if (record_.traffic_absent.empty())  // else a finding says so
      seen += "; states and counters only, no traffic";
    const std::string host = machine_.host.name.empty() ? "this host" : wording::name(machine_.host.name);
    // Also of a host on which nothing was measured: the line then says so.
    if (!diagnosis_.verdict)
      line(style_.good("No problem found") + " on " + host + ": " + seen + ".");
    else
      line(host + ": " + seen + ".");
  }

  void print_finding(const Finding& finding) {
    const std::string word(verdict::word(finding));
    out_ += '\n';
    line((word == "CRITICAL" ? style_.bad(word) : style_.warning(word)) + ": " + finding.statement);
    out_ += style_.faint("  [" + std::string(id_text(finding.id)) + "]") + '\n';
    const size_t shown = verbose_ ? finding.evidence.size() : std::min(kLines, finding.evidence.size());
    for (size_t i = 0; i < shown; ++i) line("* " + finding.evidence[i], 2);
    if (shown < finding.evidence.size())
      line("* and " + std::to_string(finding.evidence.size() - shown) + " more (-v)", 2);
    if (!finding.advice.empty()) line("Do next: " + finding.advice, 2);
    if (!finding.needed_evidence.empty()) line("What would decide it: " + finding.needed_evidence, 2);
  }

  void notes() {
    const auto is_note = [](const Finding& finding) { return finding.severity == Severity::kNote; };
    if (std::none_of(diagnosis_.findings.begin(), diagnosis_.findings.end(), is_note)) return;
    heading("Worth knowing");
    for (const Finding& finding : diagnosis_.findings) {
      if (!is_note(finding)) continue;
      line("* " + finding.statement +
               (finding.needed_evidence.empty() ? "" : "; to see it: " + finding.needed_evidence),
           2);
      if (!verbose_) continue;
      for (const std::string& evidence : finding.evidence) line("- " + evidence, 4);
      if (!finding.advice.empty()) line("- " + finding.advice, 4);
    }
  }

  void matrix(CellKind kind, const std::string& title) {
    if (!record_.traffic) return;
    std::vector<std::string> places;
    for (const Cell& cell : record_.traffic->cells)
      if (cell.kind == kind)
        for (const std::string& place : {cell.from, cell.to})
          if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    if (places.empty()) return;
    // By the GPU's number; as text GPU 10 would come before GPU 2.
    std::sort(places.begin(), places.end(),
              [&](const std::string& a, const std::string& b) { return number(a) < number(b); });
    std::vector<std::string> headings = {"<"};
    for (const std::string& place : places) headings.push_back(place_words(machine_, place));
    Table table(std::move(headings));
    for (const std::string& from : places) {
      std::vector<std::string> row = {place_words(machine_, from)};
      for (const std::string& to : places) row.push_back(cell_text(kind, from, to));
      table.add(std::move(row));
    }
    heading(title);
    out_ += table.text();
  }

  std::string cell_text(CellKind kind, const std::string& from, const std::string& to) const {
    const auto& cells = record_.traffic->cells;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (cells[i].kind != kind || cells[i].from != from || cells[i].to != to) continue;
      // The mark is of the first measurement alone; a finding needs a second one that agrees.
      const auto siblings = lockstep::links::compare(cells, i, paths_);
      const bool is_slow = siblings && stands_out(cells[i], cells[i].value(), *siblings);
      return format_decimal(cells[i].value(), is_latency(kind) || cells[i].value() >= 100 ? 0 : 1) +
             (is_slow ? " !" : "");
    }
    return "-";
  }

  size_t number(const std::string& pci) const {
    for (const Gpu& gpu : machine_.gpus)
      if (gpu.pci == pci) return gpu.index;
    return SIZE_MAX;
  }

  void host_table() {
    if (!record_.traffic) return;
    // By the GPU's number, if it has one, its place and that of the memory.
    std::map<std::tuple<size_t, std::string, std::string>, std::map<CellKind, const Cell*>> rows;
    for (const Cell& cell : record_.traffic->cells) {
      const bool from_host = cell.from.starts_with("host");
      // Between GPUs, or within the host: the matrices have those.
      if (from_host == cell.to.starts_with("host")) continue;
      const std::string& gpu = from_host ? cell.to : cell.from;
      rows[{number(gpu), gpu, from_host ? cell.from : cell.to}][cell.kind] = &cell;
    }
    if (rows.empty()) return;
    Table table({"<GPU", "<host memory", "to GPU", "to host", "to all", "from all"});
    for (const auto& [key, cells] : rows) {
      std::vector<std::string> row = {place_words(machine_, std::get<1>(key)),
                                      place_words(machine_, std::get<2>(key))};
      for (const CellKind kind :
           {CellKind::kToGpu, CellKind::kToHost, CellKind::kToGpuAll, CellKind::kToHostAll}) {
        const auto cell = cells.find(kind);
        row.push_back(cell == cells.end() ? "-" : format_decimal(cell->second->value(), 1));
      }
      table.add(std::move(row));
    }
    heading("Host memory, GB/s; 'all' while every GPU copies");
    out_ += table.text();
  }

  static std::string pcie_text(const PciLink& link) { return link.rate() ? link_words(link) : "-"; }

  void devices() {
    if (machine_.gpus.empty() && machine_.nics.empty()) return;
    Table table({"<device", "<PCI", "~<node", "<PCIe now", "~<can", "<state"});
    const auto row = [&](const std::string& name, const std::string& pci, const std::string& state) {
      const auto device = machine_.pci.find(pci);
      const bool is_known = device != machine_.pci.end();
      table.add({name, pci.empty() ? "-" : pci,
                 is_known && device->second.numa_node ? std::to_string(*device->second.numa_node) : "-",
                 is_known ? pcie_text(device->second.now) : "-",
                 is_known ? pcie_text(device->second.most) : "-", state});
    };
    for (const Gpu& gpu : machine_.gpus) {
      const auto up = std::count_if(gpu.links.begin(), gpu.links.end(),
                                    [](const GpuLink& link) { return link.is_up.value_or(false); });
      row("GPU " + std::to_string(gpu.index), gpu.pci,
          // Another tool may just not show them.
          gpu.links.empty() ? (record_.scope.empty() ? "no NVLink" : "-")
                            : std::to_string(up) + " of " + std::to_string(gpu.links.size()) + " NVLinks up");
    }
    for (const Nic& nic : machine_.nics) {
      std::string state;
      for (const Port& port : nic.ports)
        state += (state.empty() ? "" : "; ") + port.state +
                 (port.gigabits ? ", " + format_decimal(*port.gigabits, 0) + " Gb/s" : "") +
                 (port.link_layer.empty() ? "" : ", " + port.link_layer);
      row(nic.name, nic.pci, state.empty() ? "-" : state);
    }
    heading("Devices");
    out_ += table.text();
  }

  const LinksRecord& record_;
  const Machine machine_;
  const std::vector<std::string> paths_;  // of the cells
  const analysis::Diagnosis& diagnosis_;
  const Style& style_;
  const bool verbose_;
  std::string out_;
};

}  // namespace

std::string report_text(const LinksRecord& record, const analysis::Diagnosis& diagnosis, const Style& style,
                        bool verbose) {
  return Report(record, diagnosis, style, verbose).text();
}

}  // namespace lockstep::cli::links
