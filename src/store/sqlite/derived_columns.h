// SPDX-License-Identifier: Apache-2.0
// The columns that only a merge can fill: numbers that are equal over the run, and names for the rocpd views.
// Computed for one trace at a time; what has to last over the run is in RunNumbers.
#pragma once
#include <cstdint>
#include <vector>

#include "model/run_numbers.h"
#include "model/trace.h"
#include "store/sqlite/run_names.h"

namespace lockstep::store::sqlite {

// For one writer and one thread; kept over the whole run, as `run` counts on from process to process.
class DerivedColumns {
 public:
  // `names` has just seen the trace.
  void compute(const model::Trace& trace, RunNames& names);
  model::RunNumbers run;

  // By row of the trace's tables.
  std::vector<uint32_t> call_name, mark_label;
  std::vector<uint32_t> op_name;
  std::vector<int64_t> op_host_end;
  std::vector<uint32_t> launch_name;

 private:
  void compute_ops(const model::Trace& trace, const RunNames& names);
  void compute_launches(const model::Trace& trace, RunNames& names);
};

}  // namespace lockstep::store::sqlite
