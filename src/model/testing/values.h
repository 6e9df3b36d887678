// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/trace.h"

namespace lockstep::model::testing {

// A column of a table, to compare with: values(trace.ops, &OpTable::count).
template <class Table, class T>
std::vector<T> values(const Table& table, TableColumn<T> Table::*column) {
  const auto all = table.all(column);
  return {all.begin(), all.end()};
}

}  // namespace lockstep::model::testing
