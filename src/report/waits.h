// SPDX-License-Identifier: Apache-2.0
// Who came late and who waited, over time: what the straggler analysis finds operation by operation, added up
// in columns of time for each process, with the worst operations of each cell; and all of it for a few
// operations.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "analysis/straggler/lateness/lateness.h"
#include "report/report_context.h"

namespace lockstep::report {

inline constexpr uint32_t kColumnsMost = 300;

struct WaitCell {
  double waiting_ns = 0, blamed_ns = 0;
  float late_ns = 0;  // the latest; of no operation 0
  uint32_t ops = 0;
};

// One arrival.
struct WorstOp {
  uint32_t comm = 0, index = 0;
  float late_ns = 0, waiting_ns = -1;  // waiting < 0: none
  int64_t at_ns = 0;                   // arrival, as ReportContext places it
};
// Of a process in a column: the operations that it was latest in, and the one that it waited in longest.
// Operations that it was not late in are none of the former: a rank that waits for another is not late.
struct WorstOps {
  std::span<const WorstOp> late;  // the latest first
  const WorstOp& waited;
};

// What one member did in an operation.
struct MemberWait {
  uint32_t member = 0;  // of Job::members
  float late_ns = 0, waiting_ns = 0;
  float moving_ns = -1;    // -1: it has no GPU times
  int64_t arrival_ns = 0;  // as ReportContext places it
};
struct OperationWaits {
  double lost_ns = 0;  // what its members waited
  std::vector<MemberWait> members;
};

class WaitTable {
 public:
  // `wanted`: operations that are to be kept whole, besides the `worst` that cost most.
  WaitTable(const ReportContext& context, const std::set<OperationKey>& wanted, size_t worst);

  const analysis::straggler::Lateness& lateness() const { return lateness_; }
  uint32_t columns() const { return columns_; }
  int64_t begin_ns() const { return begin_ns_; }  // of the first column, as ReportContext places times
  int64_t width_ns() const { return width_ns_; }
  const WaitCell& cell(uint32_t process, uint32_t column) const {
    return cells_[size_t{process} * columns_ + column];
  }
  // Those of waiting_ns < 0 are none.
  WorstOps worst_of(uint32_t process, uint32_t column) const {
    const WorstOp* of = &worst_[(size_t{process} * columns_ + column) * (kept_ + 1)];
    return {{of, kept_}, of[kept_]};
  }
  // Operations that are kept whole.
  const std::map<OperationKey, OperationWaits>& operations() const { return operations_; }
  // Of them, those with the most lost time, the worst first.
  const std::vector<OperationKey>& worst_operations() const { return worst_operations_; }

 private:
  using Group = analysis::straggler::ComparedGroup;
  void set_columns();
  void add(const Group& group);
  void add_cells(const analysis::straggler::MemberPast& past, const analysis::straggler::ExclusiveTimes& own);
  void keep_operations(const Group& group);
  void keep(const Group& group, OperationKey key);
  void add_blame();
  uint32_t column_at(int64_t ns) const;

  const ReportContext& context_;
  const model::Job& job_;
  const std::set<OperationKey>& wanted_;
  const size_t worst_most_;
  analysis::straggler::Lateness lateness_;
  uint32_t columns_ = 0;
  int64_t begin_ns_ = 0, width_ns_ = 1;
  size_t kept_ = 1;  // operations of a cell that it was latest in
  std::vector<WaitCell> cells_;
  std::vector<WorstOp> worst_;  // of each cell those, and the one that was waited in longest
  std::map<OperationKey, OperationWaits> operations_;
  std::vector<OperationKey> worst_operations_;
};

}  // namespace lockstep::report
