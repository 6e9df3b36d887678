// SPDX-License-Identifier: Apache-2.0
// What could not be read of one file, until a trace takes it over. One row per kind: counts add up and the
// detail is that of the first occurrence, so that a file of nothing but damage costs a handful of rows.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace lockstep::readers::native {

// One thread. Kinds are few, so a list that is searched is enough.
class ReadLosses {
 public:
  struct Row {
    std::string_view kind;
    uint64_t count;
    std::string detail;
  };

  // `kind` is a literal; `detail()` is called for the first occurrence only.
  template <class Detail>
  void add(std::string_view kind, uint64_t count, Detail&& detail) {
    if (count == 0) return;
    for (Row& row : rows_) {
      if (row.kind == kind) {
        row.count += count;
        return;
      }
    }
    rows_.push_back({kind, count, detail()});
  }
  const std::vector<Row>& rows() const { return rows_; }
  // 0 of a kind that nothing was counted of.
  uint64_t count(std::string_view kind) const {
    for (const Row& row : rows_) {
      if (row.kind == kind) return row.count;
    }
    return 0;
  }
  // As losses of stage `read` of the process; empty afterwards.
  void move_into(model::Trace& trace, uint32_t process) {
    for (const Row& row : rows_) trace.lose(process, "read", row.kind, row.count, row.detail);
    rows_.clear();
  }

 private:
  std::vector<Row> rows_;
};

}  // namespace lockstep::readers::native
