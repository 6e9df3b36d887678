// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "analysis/log_figures/log_figures.h"
#include "analysis/log_figures/topology.h"
#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
#include "cli/kit/table.h"
#include "cli/logs/log_report.h"

namespace lockstep::cli::logs {
namespace {

using analysis::Finding;
using analysis::Severity;

constexpr size_t kWidth = 100;
constexpr size_t kRows = 20;  // of a table that is not verbose

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }
std::string or_dash(int64_t number) { return number < 0 ? "-" : std::to_string(number); }
std::string rank_list(const std::vector<int32_t>& ranks) {
  const std::string words = ranks.empty() ? "- -" : wording::ranks(ranks, 4);
  return words.substr(words.find(' ') + 1);
}

class Text {
 public:
  Text(const LogReport& report, const Style& style, bool verbose)
      : report_(report), style_(style), verbose_(verbose) {}

  std::string text() {
    findings();
    hosts();
    comms();
    hardware();
    wiring();
    transports();
    algorithms();
    settings();
    coverage();
    return std::move(out_);
  }

 private:
  size_t limit() const { return verbose_ ? SIZE_MAX : kRows; }

  void findings() {
    if (report_.findings.empty()) out_ += style_.good("No problem found") + " in the logs.\n";
    for (const Finding& finding : report_.findings) {
      const bool is_note = finding.severity == Severity::kNote;
      const std::string word = is_note                                   ? "note"
                               : finding.severity == Severity::kCritical ? "CRITICAL"
                                                                         : "WARNING";
      const std::string body = wrap(word + ": " + finding.statement, 2, kWidth).substr(word.size());
      out_ += (is_note                                   ? style_.faint(word)
               : finding.severity == Severity::kCritical ? style_.bad(word)
                                                         : style_.warning(word)) +
              body + '\n' + style_.faint("  [" + std::string(id_text(finding.id)) + "]") + '\n';
      evidence(finding);
      if (!finding.advice.empty()) out_ += "  > " + wrap(finding.advice, 4, kWidth) + '\n';
      if (!finding.needed_evidence.empty())
        out_ += "  > " + wrap("To decide it: " + finding.needed_evidence + '.', 4, kWidth) + '\n';
      out_ += '\n';
    }
  }

  // Ranks say the same one after the other: the first lines do, unless the job stands still.
  void evidence(const Finding& finding) {
    const size_t most = verbose_ || finding.severity == Severity::kCritical ? SIZE_MAX
                        : finding.severity == Severity::kWarning            ? 3
                                                                            : 1;
    const size_t shown = std::min(finding.evidence.size(), most);
    for (size_t i = 0; i < shown; ++i) out_ += "  * " + wrap(finding.evidence[i], 4, kWidth) + '\n';
    if (shown < finding.evidence.size()) out_ += style_.faint("  * more lines like it: -v shows them") + '\n';
  }

  void table(const std::string& heading, const Table& table, size_t rows) {
    if (table.empty()) return;
    out_ += style_.heading(heading) + '\n' + table.text();
    if (rows > limit()) out_ += "  ... and " + format_count(rows - limit()) + " more; -v shows all\n";
    out_ += '\n';
  }

  void hosts() {
    const auto rows = analysis::log_figures::host_rows(report_.model);
    Table shown({"<host", "processes", "<ranks", "<NCCL", "<driver CUDA", "<network", "<cards", "warnings"});
    for (size_t i = 0; i < std::min(rows.size(), limit()); ++i) {
      const analysis::log_figures::HostRow& row = rows[i];
      shown.add({row.host, std::to_string(row.processes), rank_list(row.ranks), or_dash(row.version),
                 or_dash(row.driver), or_dash(row.network), or_dash(row.cards),
                 std::to_string(row.warnings)});
    }
    table("Processes", shown, rows.size());
  }

  void comms() {
    const auto rows = analysis::log_figures::comm_rows(report_.model);
    Table shown({"<communicator", "ranks", "<job ranks", "seen", "complete", "nodes", "channels", "rings",
                 "trees", "created in"});
    for (size_t i = 0; i < std::min(rows.size(), limit()); ++i) {
      const analysis::log_figures::CommRow& row = rows[i];
      shown.add({row.name, or_dash(row.ranks), rank_list({row.members.begin(), row.members.end()}),
                 std::to_string(row.present.size()), std::to_string(row.completed.size()), or_dash(row.nodes),
                 or_dash(row.coll_channels), or_dash(row.rings), or_dash(row.trees),
                 row.init_seconds < 0 ? "-" : format_duration(row.init_seconds * 1e9)});
    }
    table("Communicators (splits as PARENT/CALL.COLOUR)", shown, rows.size());
  }

  void hardware() {
    const auto hosts = analysis::log_figures::host_hardware(report_.model);
    if (hosts.empty()) return;
    out_ += style_.heading("Hardware, as NCCL sees it") + '\n';
    for (size_t i = 0; i < std::min(hosts.size(), limit()); ++i)
      out_ += "  " + wrap(hosts[i].host + ": " + hosts[i].text, 4, kWidth) + '\n';
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
              wrap(analysis::log_figures::channels_text(list[i].channels) + ": " + list[i].text, 14, kWidth) +
              '\n';
    }
  }

  void wiring() {
    constexpr size_t kCommsShown = 8;
    const auto comms = analysis::log_figures::comm_wirings(report_.model, verbose_ ? SIZE_MAX : kCommsShown);
    std::string text;
    std::swap(text, out_);
    for (const analysis::log_figures::CommWiring& comm : comms) {
      if (comm.rings.empty() && comm.trees.empty() && comm.pairs.empty()) continue;
      out_ += "  " + comm.name + ", ranks " + rank_list(comm.members) + " of the job\n";
      wires("rings", comm.rings);
      wires("trees", comm.trees);
      if (!comm.nvls.empty()) out_ += "    NVLS    " + comm.nvls + '\n';
      for (const analysis::log_figures::PairGroup& group : comm.pairs) pairs(group, comm.ranks);
    }
    std::swap(text, out_);
    if (text.empty()) return;
    out_ += style_.heading(
                "Wiring (ranks of each communicator; rings: hosts between bars; trees: a rank and those "
                "below it)") +
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
    out_ += "    pairs   " + wrap(way + ": " + analysis::log_figures::pairs_text(group, ranks), 14, kWidth) +
            '\n';
  }

  void transports() {
    const auto rows = analysis::log_figures::transport_rows(report_.model);
    Table shown({"<transport", "<GPUDirect", "pairs", "channels"});
    for (const analysis::log_figures::TransportRow& row : rows)
      shown.add({row.via, row.via.starts_with("NET/") ? (row.gdr ? "yes" : "no") : "-",
                 format_count(row.pairs), format_count(row.channels)});
    table("Connections (from one rank to another, by each sender)", shown, 0);
  }

  void algorithms() {
    Table shown({"<function, algorithm, protocol", "calls", "bytes", "to"});
    size_t rows = 0;
    for (const auto& [use, figures] : report_.model.algorithms) {
      if (++rows <= limit())
        shown.add({use, format_count(figures.count), format_bytes(figures.least_bytes),
                   format_bytes(figures.most_bytes)});
    }
    table("Algorithms (as reported by rank 0 of each communicator)", shown, rows);
  }

  void settings() {
    const auto rows = analysis::log_figures::setting_rows(report_.model);
    Table shown({"<setting", "<value", "processes"});
    for (size_t i = 0; i < std::min(rows.size(), limit()); ++i)
      shown.add({rows[i].name, rows[i].value, format_count(rows[i].processes)});
    table("Settings that NCCL reports", shown, rows.size());
  }

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
                   4, kWidth) +
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
    out_ += style_.heading("Lost") + "      " + (lost.empty() ? "nothing" : wrap(lost, 10, kWidth)) + '\n';
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
