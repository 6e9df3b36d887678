// SPDX-License-Identifier: Apache-2.0
// A page cannot show ten thousand rows, and the rows that matter must not be lost among hosts: ranks that
// findings name and those that cost most stay single, the rest are hosts.
#include "report/rows.h"

#include <algorithm>
#include <map>

#include "base/text/units.h"
#include "base/text/wording.h"

namespace lockstep::report {
namespace {

using model::Job;

// Single rows and groups together never exceed kRowsMost.
constexpr size_t kGroupsMost = kRowsMost - kSingleRows;

Row single(const Job& job, uint32_t process) { return {job.process_name(process), {process}, false}; }

// The named first, then those that cost most.
std::vector<uint32_t> notable(const ReportContext& context, const std::vector<uint32_t>& processes,
                              const std::vector<double>& cost) {
  std::vector<uint32_t> chosen = processes;
  std::erase_if(chosen, [&](uint32_t process) { return !context.is_named(process) && cost[process] <= 0; });
  std::stable_sort(chosen.begin(), chosen.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(context.is_named(a), cost[a]) > std::pair(context.is_named(b), cost[b]);
  });
  if (chosen.size() > kSingleRows) chosen.resize(kSingleRows);
  sort_by_rank(context.job(), chosen);
  return chosen;
}

std::vector<Row> groups(const Job& job, const std::vector<uint32_t>& processes) {
  std::map<uint32_t, std::vector<uint32_t>> by_host;
  for (uint32_t process : processes) by_host[job.processes[process].host].push_back(process);
  // With more hosts than rows, neighbouring hosts share one: a row each would break the bound.
  const size_t hosts_a_row = (by_host.size() + kGroupsMost - 1) / kGroupsMost;
  std::vector<Row> rows;
  size_t hosts = 0;
  for (const auto& [host, of] : by_host) {
    if (hosts++ % hosts_a_row == 0) rows.push_back({shown(job.text(job.hosts[host].name)), {}, true});
    rows.back().processes.insert(rows.back().processes.end(), of.begin(), of.end());
  }
  for (size_t i = 0; i < rows.size() && hosts_a_row > 1; ++i)
    rows[i].label += " and " + plural(std::min(hosts - i * hosts_a_row, hosts_a_row) - 1, "other host");
  return rows;
}

}  // namespace

void sort_by_rank(const Job& job, std::vector<uint32_t>& processes) {
  std::stable_sort(processes.begin(), processes.end(), [&](uint32_t a, uint32_t b) {
    const model::JobProcess &x = job.processes[a], &y = job.processes[b];
    return std::tuple(x.row.rank, x.host, x.row.pid) < std::tuple(y.row.rank, y.host, y.row.pid);
  });
}

std::vector<Row> choose_rows(const ReportContext& context, std::vector<uint32_t> processes,
                             const std::vector<double>& cost) {
  sort_by_rank(context.job(), processes);
  std::vector<Row> rows;
  const bool all = processes.size() <= kRowsMost;
  for (uint32_t process : all ? processes : notable(context, processes, cost))
    rows.push_back(single(context.job(), process));
  if (all) return rows;
  // Groups hold all processes, also those with a row of their own: a group stands for its whole host.
  for (Row& row : groups(context.job(), processes)) rows.push_back(std::move(row));
  return rows;
}

std::string ranks_text(const Job& job, const std::vector<uint32_t>& processes) {
  std::vector<int32_t> ranks;
  for (uint32_t process : processes) {
    if (job.processes[process].row.rank >= 0) ranks.push_back(job.processes[process].row.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.empty()) return processes.size() == 1 ? job.process_name(processes[0]) : "";
  // "ranks 0-7": the page has its own word for it.
  const std::string words = wording::ranks(ranks);
  return words.substr(words.find(' ') + 1);
}

Json row_json(const ReportContext& context, const Row& row) {
  const Job& job = context.job();
  const bool named = std::any_of(row.processes.begin(), row.processes.end(),
                                 [&](uint32_t process) { return context.is_named(process); });
  const bool aligned = std::all_of(row.processes.begin(), row.processes.end(), [&](uint32_t process) {
    return job.hosts[job.processes[process].host].clock.known();
  });
  return {{"label", shown(row.label)},
          {"who", row.is_group ? Json(nullptr) : Json(row.processes[0])},
          {"ranks", shown(ranks_text(job, row.processes))},
          {"of", row.processes.size()},
          {"named", named},
          {"aligned", aligned}};
}

}  // namespace lockstep::report
