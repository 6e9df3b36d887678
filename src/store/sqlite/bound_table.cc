// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/bound_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "store/sqlite/row_digest.h"

namespace lockstep::store::sqlite {

bool is_constant(const BoundColumn& column, size_t rows) {
  return rows != 0 && with_elements(column, [rows](const auto* elements, const auto&) {
           // Each with its neighbour: memcmp() takes many at once.
           return std::memcmp(elements, elements + 1, (rows - 1) * sizeof *elements) == 0;
         });
}

int64_t digest_of(const BoundTable& table, size_t columns) {
  const auto term = [](size_t column, std::optional<int64_t> value) {
    return RowDigest::term(column, value.value_or(RowDigest::kNull));
  };
  uint64_t constants = 0;
  std::vector<size_t> others;
  for (size_t i = 0; i < columns; ++i) {
    if (is_constant(table.columns[i], table.rows))
      constants += term(i, stored_value(table.columns[i], 0));
    else
      others.push_back(i);
  }
  RowDigest digest;
  std::array<uint64_t, 1024> terms;  // sums of as many rows: they stay in the nearest cache
  for (size_t first = 0; first < table.rows; first += terms.size()) {
    const size_t rows = std::min(terms.size(), table.rows - first);
    terms.fill(constants);
    for (const size_t i : others) {
      with_elements(table.columns[i], [&](const auto* elements, const auto& stored) {
        for (size_t row = 0; row < rows; ++row) terms[row] += term(i, stored(elements[first + row]));
      });
    }
    for (size_t row = 0; row < rows; ++row) digest.add_row(terms[row]);
  }
  return digest.value();
}

}  // namespace lockstep::store::sqlite
