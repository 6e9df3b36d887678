// SPDX-License-Identifier: Apache-2.0
// Draws lateness as a map: a row for each rank, a column for each part of the run's time. Waiting, lateness
// and blame stand side by side: the rank that waits is the victim, and waiting alone would accuse it. Cells
// come from WaitTable in one pass; the worst operations of the worst cells are kept for a click. The page is
// bounded in rows, columns and drill-downs, whatever the size of the job.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "analysis/straggler/lateness/steps.h"
#include "base/text/units.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

using analysis::straggler::Waits;

// Of up to 76,800 cells (256 rows of 300 columns); all of them would make a page of many megabytes.
constexpr size_t kDrillCells = 4000, kDrillLate = 2;
constexpr size_t kMarksMost = 300;

constexpr const char* kNotCompared =
    "No operation could be compared between ranks, so nobody can be said to be late: that takes the "
    "records of two ranks or more of one communicator, with the order of their operations known. `lockstep "
    "trace` records every rank.";

// Lists over the columns for one row.
class RowCells {
 public:
  RowCells(const WaitTable& waits, const Row& row) : waits_(waits), row_(row) {
    for (const char* name : {"waiting_ns", "late_ns", "blamed_ns", "ops"}) out_[name] = Json::array();
    if (row.is_group) {
      for (const char* name : {"late_min_ns", "late_max_ns", "waiting_min_ns", "waiting_max_ns", "worst"})
        out_[name] = Json::array();
    }
    for (uint32_t column = 0; column < waits.columns(); ++column)
      row.is_group ? add_group(column) : add_single(column);
  }
  void put(Json& into) { into.update(out_); }

 private:
  void add_single(uint32_t column) {
    const WaitCell& cell = waits_.cell(row_.processes[0], column);
    // Null and not 0: a rank that had no operation was not in time.
    const bool any = cell.ops > 0;
    out_["waiting_ns"].push_back(any ? whole_ns(cell.waiting_ns) : Json(nullptr));
    out_["late_ns"].push_back(any ? whole_ns(static_cast<double>(cell.late_ns)) : Json(nullptr));
    out_["blamed_ns"].push_back(any ? whole_ns(cell.blamed_ns) : Json(nullptr));
    out_["ops"].push_back(any ? Json(cell.ops) : Json(nullptr));
  }

  void add_group(uint32_t column) {
    std::vector<double> waiting, late, blamed;
    uint64_t ops = 0;
    uint32_t worst = model::kNoRow;
    for (uint32_t process : row_.processes) {
      const WaitCell& cell = waits_.cell(process, column);
      // Ranks without an operation in this column would pull the median to 0.
      if (cell.ops == 0) continue;
      if (worst == model::kNoRow || cell.late_ns > waits_.cell(worst, column).late_ns) worst = process;
      waiting.push_back(cell.waiting_ns);
      late.push_back(static_cast<double>(cell.late_ns));
      blamed.push_back(cell.blamed_ns);
      ops += cell.ops;
    }
    const auto spread = [&](std::vector<double>& values, const char* middle, const char* least,
                            const char* most) {
      std::sort(values.begin(), values.end());
      const auto put = [&](const char* name, size_t at) {
        if (name != nullptr) out_[name].push_back(values.empty() ? Json(nullptr) : whole_ns(values[at]));
      };
      // The lower median is a value that some rank really had.
      put(middle, values.empty() ? 0 : (values.size() - 1) / 2);
      put(least, 0);
      put(most, values.empty() ? 0 : values.size() - 1);
    };
    spread(waiting, "waiting_ns", "waiting_min_ns", "waiting_max_ns");
    spread(late, "late_ns", "late_min_ns", "late_max_ns");
    spread(blamed, "blamed_ns", nullptr, nullptr);
    out_["ops"].push_back(ops > 0 ? Json(ops) : Json(nullptr));
    out_["worst"].push_back(worst == model::kNoRow ? Json(nullptr) : Json(worst));
  }

  const WaitTable& waits_;
  const Row& row_;
  Json out_ = Json::object();
};

Json total_json(const Waits& sum, double late_p50_ns, double late_p99_ns) {
  return {{"ops", sum.ops},
          {"timed", sum.timed},
          {"waiting_ns", whole_ns(sum.waiting_ns)},
          {"moving_ns", sum.timed == 0 ? Json(nullptr) : whole_ns(sum.moving_ns)},
          {"blamed_ns", whole_ns(sum.blamed_ns)},
          {"late_p50_ns", whole_ns(late_p50_ns)},
          {"late_p99_ns", whole_ns(late_p99_ns)}};
}

// Of a group.
Json group_total(const WaitTable& waits, const Row& row) {
  Waits sum;
  double p50 = 0, p99 = 0;
  for (uint32_t process : row.processes) {
    const Waits& of = waits.lateness().processes[process];
    sum.add(of);
    // Quantiles cannot be added up: of a group the worst rank's are shown.
    p50 = std::max(p50, of.lateness.quantile(0.5));
    p99 = std::max(p99, of.lateness.quantile(0.99));
  }
  return total_json(sum, p50, p99);
}

// Of each process, by column.
Json process_totals(const WaitTable& waits) {
  Json columns = Json::object();
  for (const Waits& of : waits.lateness().processes) {
    const Json total = total_json(of, of.lateness.quantile(0.5), of.lateness.quantile(0.99));
    for (const auto& [name, value] : total.items()) columns[name].push_back(value);
  }
  return columns;
}

struct CellOps {
  uint32_t row = 0, column = 0;
  std::vector<std::pair<uint32_t, WorstOp>>
      worst;                          // process, operation: the latest first, then the waited in
  float late_ns = 0, waiting_ns = 0;  // the most of any
};

CellOps cell_ops(const WaitTable& waits, const Row& row, uint32_t r, uint32_t column) {
  CellOps cell{r, column, {}};
  std::optional<std::pair<uint32_t, WorstOp>> waited;
  for (const uint32_t process : row.processes) {
    const WorstOps ops = waits.worst_of(process, column);
    for (const WorstOp& op : ops.late) {
      if (op.waiting_ns >= 0) cell.worst.emplace_back(process, op);
    }
    if (ops.waited.waiting_ns > cell.waiting_ns) {
      cell.waiting_ns = ops.waited.waiting_ns;
      waited.emplace(process, ops.waited);
    }
  }
  std::stable_sort(cell.worst.begin(), cell.worst.end(),
                   [](const auto& a, const auto& b) { return a.second.late_ns > b.second.late_ns; });
  if (cell.worst.size() > kDrillLate) cell.worst.resize(kDrillLate);
  if (!cell.worst.empty()) cell.late_ns = cell.worst.front().second.late_ns;
  const auto is_waited = [&](const auto& one) {
    return one.first == waited->first && one.second.comm == waited->second.comm &&
           one.second.index == waited->second.index;
  };
  if (waited && std::none_of(cell.worst.begin(), cell.worst.end(), is_waited)) cell.worst.push_back(*waited);
  return cell;
}

// The cells of the page that stand out, in order of place: half of them as the latest, as those who wait for
// one rank would leave no room for it, the others as those who waited longest.
std::vector<CellOps> worst_cells(const WaitTable& waits, const std::vector<Row>& rows) {
  std::vector<CellOps> cells;
  for (uint32_t r = 0; r < rows.size(); ++r) {
    for (uint32_t column = 0; column < waits.columns(); ++column) {
      CellOps cell = cell_ops(waits, rows[r], r, column);
      if (!cell.worst.empty()) cells.push_back(std::move(cell));
    }
  }
  if (cells.size() > kDrillCells) {
    // Linear, where sorting all cells of a large job would not be: only the set matters, its order comes
    // next.
    const auto middle = cells.begin() + kDrillCells / 2, end = cells.begin() + kDrillCells;
    std::nth_element(cells.begin(), middle, cells.end(),
                     [](const CellOps& a, const CellOps& b) { return a.late_ns > b.late_ns; });
    std::nth_element(middle, end, cells.end(),
                     [](const CellOps& a, const CellOps& b) { return a.waiting_ns > b.waiting_ns; });
    cells.resize(kDrillCells);
  }
  std::sort(cells.begin(), cells.end(), [](const CellOps& a, const CellOps& b) {
    return std::pair(a.row, a.column) < std::pair(b.row, b.column);
  });
  return cells;
}

Json drill_json(const ReportContext& context, const WaitTable& waits, const std::vector<Row>& rows,
                const OperationPlaces& places) {
  Json out = Json::object();
  for (const char* name :
       {"row", "column", "comm", "op_index", "who", "late_ns", "waiting_ns", "at_ns", "operation"})
    out[name] = Json::array();
  for (const CellOps& cell : worst_cells(waits, rows)) {
    for (const auto& [process, op] : cell.worst) {
      out["row"].push_back(cell.row);
      out["column"].push_back(cell.column);
      out["comm"].push_back(op.comm);
      out["op_index"].push_back(op.index);
      out["who"].push_back(process);
      out["late_ns"].push_back(whole_ns(static_cast<double>(op.late_ns)));
      out["waiting_ns"].push_back(whole_ns(static_cast<double>(op.waiting_ns)));
      out["at_ns"].push_back(context.since_begin(op.at_ns));
      out["operation"].push_back(place_of(places, {op.comm, op.index}));
    }
  }
  return out;
}

Json marks_json(const ReportContext& context) {
  const analysis::straggler::Steps steps = analysis::straggler::find_steps(context.job());
  Json list = Json::array();
  // Equal parts of the run mean nothing to the program: marking them would suggest steps.
  if (steps.source == analysis::straggler::Steps::Source::kSlices) return list;
  // Every n-th mark, as more could not be told apart. Steps are on the reference clock already where that
  // could be done.
  const size_t each = (steps.size() + kMarksMost - 1) / kMarksMost;
  for (size_t i = 0; i < steps.size(); i += each)
    list.push_back(
        {{"number", steps.number[i]},
         {"at_ns", context.since_begin(context.placed_common_ns(steps.process, steps.begin_ns[i]))}});
  return list;
}

Json notes_json(const ReportContext& context, const WaitTable& waits, const std::vector<Row>& rows) {
  Json notes = Json::array();
  const auto& lateness = waits.lateness();
  if (lateness.timed == 0)
    notes.push_back(
        "No GPU times: ranks arrive when their hosts launch. Hosts run ahead of their GPUs, so some of "
        "this lateness costs nobody anything.");
  if (lateness.not_comparable > 0)
    notes.push_back(
        plural(lateness.not_comparable, "process") +
        " with several ranks of one communicator each are left out: their calls do not tell them apart.");
  if (!context.has_one_clock())
    notes.push_back(
        "Clocks of some hosts could not be aligned: their ranks are compared with each other alone, and each "
        "such host is drawn as if its first record were the start of the run.");
  if (rows.back().is_group)
    notes.push_back(
        format_count(static_cast<uint64_t>(
            std::count_if(rows.begin(), rows.end(), [](const Row& row) { return !row.is_group; }))) +
        " of " + plural(lateness.processes.size(), "process") +
        " have rows of their own: those that findings name and the worst. All ranks of a host share one: "
        "medians, and the rank that was latest. The table below the map has every rank.");
  return notes;
}

}  // namespace

std::vector<Row> lateness_rows(const ReportContext& context, const WaitTable& waits) {
  std::vector<uint32_t> processes;
  std::vector<double> cost(context.job().processes.size());
  for (uint32_t i = 0; i < cost.size(); ++i) {
    // Blame and not lateness decides which ranks keep their own row: who is late because of others is not the
    // cause.
    cost[i] = waits.lateness().processes[i].blamed_ns;
    processes.push_back(i);
  }
  return choose_rows(context, std::move(processes), cost);
}

Json lateness_page(const ReportContext& context, const WaitTable& waits, const std::vector<Row>& rows,
                   const OperationPlaces& places) {
  const auto& lateness = waits.lateness();
  if (lateness.compared == 0) return missing(kNotCompared);
  Json list = Json::array();
  for (const Row& row : rows) {
    Json one = row_json(context, row);
    if (row.is_group) one["total"] = group_total(waits, row);
    RowCells(waits, row).put(one);
    list.push_back(std::move(one));
  }
  return {{"columns",
           {{"count", waits.columns()},
            {"begin_ns", context.since_begin(waits.begin_ns())},
            {"width_ns", waits.width_ns()}}},
          {"times", lateness.timed == 0                   ? "host"
                    : lateness.timed == lateness.compared ? "gpu"
                                                          : "mixed"},
          {"compared", lateness.compared},
          {"rows", std::move(list)},
          {"totals", process_totals(waits)},
          {"drill", drill_json(context, waits, rows, places)},
          {"marks", marks_json(context)},
          {"links", links_beside(context, waits)},
          {"notes", notes_json(context, waits, rows)}};
}

}  // namespace lockstep::report
