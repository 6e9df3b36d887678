// SPDX-License-Identifier: Apache-2.0
// Which ranks have a row of their own on a page. Up to kRowsMost all have; of more, those that findings name
// and the worst have, and hosts stand for all of their ranks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "report/report_context.h"

namespace lockstep::report {

inline constexpr size_t kRowsMost = 256;
inline constexpr size_t kSingleRows = 64;  // where the others are groups

struct Row {
  std::string label;
  std::vector<uint32_t> processes;  // rows of Job::processes, by rank
  bool is_group = false;
};

// Of these processes. `cost`: by process; the worse the larger.
std::vector<Row> choose_rows(const ReportContext& context, std::vector<uint32_t> processes,
                             const std::vector<double>& cost);
// label, who, ranks, of, named, aligned
Json row_json(const ReportContext& context, const Row& row);
// Sorts by rank, host and pid.
void sort_by_rank(const model::Job& job, std::vector<uint32_t>& processes);
// "0-7"; of processes without a rank, their pids.
std::string ranks_text(const model::Job& job, const std::vector<uint32_t>& processes);

}  // namespace lockstep::report
