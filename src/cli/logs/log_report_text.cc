// SPDX-License-Identifier: Apache-2.0
// What logs say, for people: findings, then the set-up from processes to settings, and last what was not
// understood. Unknown lines are counted and never hidden, since one of them may be the cause. Tables are cut
// at a number of rows unless -v is given.
#include <algorithm>

#include "analysis/log_figures/topology.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
#include "cli/logs/log_columns.h"
#include "cli/logs/log_report.h"
#include "verdict/outcome.h"

namespace lockstep::cli::logs {
namespace {

using analysis::Finding;
using analysis::Severity;

constexpr size_t kRows = 20;  // of a table that is not verbose

class Text {
 public:
  Text(const LogReport& report, const Style& style, bool verbose)
      : report_(report), style_(style), verbose_(verbose) {}

  std::string text() {
    findings();
    table("Processes", analysis::log_figures::host_rows(report_.model), show_host);
    table("Communicators (splits as PARENT/CALL.COLOUR)", analysis::log_figures::comm_rows(report_.model),
          show_comm);
    hardware();
    wiring();
    table("Connections (from one rank to another, by each sender)",
          analysis::log_figures::transport_rows(report_.model), show_transport);
    table("Algorithms (as reported by rank 0 of each communicator)", report_.model.algorithms,
          show_algorithm);
    table("Settings that NCCL reports", analysis::log_figures::setting_rows(report_.model), show_setting);
    coverage();
    return std::move(out_);
  }

 private:
  size_t limit() const { return verbose_ ? SIZE_MAX : kRows; }

  void findings() {
    // Only of the logs: see docs/logs.md for what they cannot show.
    if (report_.findings.empty()) out_ += style_.good("No problem found") + " in the logs.\n";
    for (const Finding& finding : report_.findings) {
      const bool is_note = finding.severity == Severity::kNote;
      const std::string word(verdict::word(finding));
      const std::string body = wrap(word + ": " + finding.statement, 2, style_.columns()).substr(word.size());
      out_ += (is_note              ? style_.faint(word)
               : word == "CRITICAL" ? style_.bad(word)
                                    : style_.warning(word)) +
              body + '\n' + style_.faint("  [" + std::string(id_text(finding.id)) + "]") + '\n';
      evidence(finding);
      if (!finding.advice.empty()) out_ += "  > " + wrap(finding.advice, 4, style_.columns()) + '\n';
      if (!finding.needed_evidence.empty())
        out_ += "  > " + wrap("What would decide it: " + finding.needed_evidence + '.', 4, style_.columns()) +
                '\n';
      out_ += '\n';
    }
  }

  // Ranks say the same one after the other: the first lines do, unless the job stands still.
  void evidence(const Finding& finding) {
    const size_t most = verbose_ || finding.severity == Severity::kCritical ? SIZE_MAX
                        : finding.severity == Severity::kWarning            ? 3
                                                                            : 1;
    const size_t shown = std::min(finding.evidence.size(), most);
    for (size_t i = 0; i < shown; ++i) out_ += "  * " + wrap(finding.evidence[i], 4, style_.columns()) + '\n';
    if (shown < finding.evidence.size()) out_ += style_.faint("  * more lines like it: -v shows them") + '\n';
  }

  template <class Rows, class Show>
  void table(const std::string& heading, const Rows& rows, const Show& show) {
    if (rows.empty()) return;
    out_ += style_.heading(heading) + '\n' + table_of(rows, limit(), show).text();
    if (rows.size() > limit())
      out_ += "  ... and " + format_count(rows.size() - limit()) + " more; -v shows all\n";
    out_ += '\n';
  }

  void hardware() {
    const auto hosts = analysis::log_figures::host_hardware(report_.model);
    if (hosts.empty()) return;
    out_ += style_.heading("Hardware, as NCCL sees it") + '\n';
    for (size_t i = 0; i < std::min(hosts.size(), limit()); ++i)
      out_ += "  " + wrap(hosts[i].host + ": " + hosts[i].text, 4, style_.columns()) + '\n';
    if (hosts.size() > limit())
      out_ += "  ... and " + format_count(hosts.size() - limit()) + " more; -v shows all\n";
    out_ += '\n';
  }

  void wires(std::string_view name, const std::vector<analysis::log_figures::Wiring>& list) {
    constexpr size_t kWiresShown = 4;
    for (size_t i = 0; i < list.size(); ++i) {
      if (!verbose_ && i == kWiresShown) {
        out_ += "            ... and " + format_count(list.size() - kWiresShown) + " more; -v shows all\n";
        return;
      }
      const std::string first = i == 0 ? std::string(name) : std::string();
      out_ += "    " + first + std::string(8 - first.size(), ' ') +
              wrap(analysis::log_figures::channels_text(list[i].channels) + ": " + list[i].text, 14,
                   style_.columns()) +
              '\n';
    }
  }

  void wiring() {
    constexpr size_t kCommsShown = 8;
    const auto comms = analysis::log_figures::comm_wirings(report_.model, verbose_ ? SIZE_MAX : kCommsShown);
    std::string text;
    // wires() and pairs() write to out_. It is empty meanwhile, so that no heading is written above nothing.
    std::swap(text, out_);
    for (const analysis::log_figures::CommWiring& comm : comms) {
      if (comm.rings.empty() && comm.trees.empty() && comm.pairs.empty()) continue;
      out_ += "  " + comm.name + (comm.members.size() == 1 ? ", rank " : ", ranks ") +
              rank_list(comm.members) + " of the job\n";
      wires("rings", comm.rings);
      wires("trees", comm.trees);
      if (!comm.nvls.empty()) out_ += "    NVLS    " + comm.nvls + '\n';
      for (const analysis::log_figures::PairGroup& group : comm.pairs) pairs(group, comm.ranks);
    }
    std::swap(text, out_);
    if (text.empty()) return;
    out_ += style_.heading(
                wrap("Wiring (ranks of each communicator; rings: hosts between bars; trees: a rank and "
                     "those below it)",
                     0, style_.columns())) +
            '\n' + text + '\n';
  }

  void pairs(const analysis::log_figures::PairGroup& group, int32_t ranks) {
    std::string way = group.via;
    if (!group.cards.empty()) {
      const std::string cards = wording::ranks({group.cards.begin(), group.cards.end()}, 4);
      way += (group.cards.size() == 1 ? ", card " : ", cards ") + cards.substr(cards.find(' ') + 1);
    }
    if (group.via.starts_with("NET/")) way += group.gdr ? ", with GPUDirect" : ", without GPUDirect";
    way += ", " + (group.least_channels == group.most_channels ? plural(group.most_channels, "channel")
                                                               : format_count(group.least_channels) + " to " +
                                                                     plural(group.most_channels, "channel"));
    out_ += "    pairs   " +
            wrap(way + ": " + analysis::log_figures::pairs_text(group, ranks), 14, style_.columns()) + '\n';
  }

  // Warnings that were not understood are shown without -v as well.
  void coverage() {
    const auto& coverage = report_.model.coverage;
    uint64_t unknown = 0, warnings = 0;
    for (const auto& [shape, seen] : report_.model.unknown) {
      unknown += seen.count;
      if (seen.is_warning) ++warnings;
    }
    out_ += style_.heading("Read") + "      " + plural(report_.model.files.size(), "file") + ", " +
            format_bytes(coverage.bytes) + ", " + plural(coverage.lines, "line") + ", " +
            format_count(coverage.headed) + " of them NCCL's";
    out_ += "\n" + style_.heading("Unknown") + "   ";
    out_ += unknown == 0 ? "none\n"
                         : plural(unknown, "line") + " of " + plural(report_.model.unknown.size(), "kind") +
                               (verbose_ ? "" : "; -v shows the first of each") + '\n';
    for (const auto& [shape, seen] : report_.model.unknown) {
      if (!verbose_ && !seen.is_warning) continue;
      const auto& first = seen.first;
      out_ += "  * " +
              wrap(format_count(seen.count) + "x  " + report_.model.files[first.file] + ':' +
                       std::to_string(first.line) + ": " + wording::name(first.text, 160),
                   4, style_.columns()) +
              '\n';
    }
    std::string lost;
    const auto lose = [&](uint64_t count, const std::string& what, const std::string& why) {
      if (count > 0) lost += (lost.empty() ? "" : ", ") + plural(count, what) + why;
    };
    lose(coverage.torn, "torn line", "");
    lose(coverage.cut_lines, "line", " longer than 64 KiB");
    lose(coverage.repeated, "line", " that a launcher left out");
    lose(coverage.beyond, "remark", " beyond a limit");
    lose(coverage.zero_bytes, "byte", " of holes");
    for (const Error& trouble : report_.troubles) lost += (lost.empty() ? "" : "; ") + trouble.message();
    out_ += style_.heading("Lost") + "      " +
            (lost.empty() ? "nothing" : wrap(lost, 10, style_.columns())) + '\n';
  }

  const LogReport& report_;
  const Style& style_;
  const bool verbose_;
  std::string out_;
};

}  // namespace

std::string report_text(const LogReport& report, const Style& style, bool verbose) {
  return Text(report, style, verbose).text();
}

}  // namespace lockstep::cli::logs
