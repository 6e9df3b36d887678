// SPDX-License-Identifier: Apache-2.0
// The columns of one table in memory as trace.db holds them: where each lies, and how its elements become
// numbers or NULL.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/trace.h"

namespace lockstep::store::sqlite {

// How one column is read: `data` has the table's row count of elements of `type`.
struct BoundColumn {
  enum class How : uint8_t { kU8, kU16, kI32, kI64, kU32, kU64, kMapped, kReference };
  How how = How::kI64;
  const void* data = nullptr;
  const uint32_t* map = nullptr;  // kMapped: run-wide number by local number
  uint32_t limit = 0;             // kMapped, kReference: local numbers from here on are NULL
  int64_t base = 0;               // kReference: run-wide id of local row 0
};

// One table at hand: columns of the model by pointer, in the order of the layout. Pointers stay valid while a
// statement over it runs.
struct BoundTable {
  size_t rows = 0;
  int64_t first_id = 0;
  std::vector<BoundColumn> columns;
};

// Calls `use` with the column's elements and with what makes of an element what the file holds: nothing is
// NULL. So a loop over a column decides once how it is read.
template <class Use>
auto with_elements(const BoundColumn& column, const Use& use) {
  using How = BoundColumn::How;
  using Value = std::optional<int64_t>;
  const auto as_it_is = [](auto element) { return Value(element); };
  switch (column.how) {
    case How::kU8:
      return use(static_cast<const uint8_t*>(column.data), as_it_is);
    case How::kU16:
      return use(static_cast<const uint16_t*>(column.data), as_it_is);
    case How::kI32:
      return use(static_cast<const int32_t*>(column.data), as_it_is);
    case How::kI64:
      return use(static_cast<const int64_t*>(column.data), as_it_is);
    case How::kU32:
      return use(static_cast<const uint32_t*>(column.data),
                 [](uint32_t element) { return element != model::kNoRow ? Value(element) : Value(); });
    // SQLite has no unsigned numbers: those above 2^63 are stored as negative ones and read back by the same
    // cast.
    case How::kU64:
      return use(static_cast<const uint64_t*>(column.data), [](uint64_t element) {
        return element != model::kNoSeq ? Value(static_cast<int64_t>(element)) : Value();
      });
    case How::kMapped:
      return use(static_cast<const uint32_t*>(column.data), [&column](uint32_t element) {
        return element < column.limit ? Value(column.map[element]) : Value();
      });
    case How::kReference:
      break;
  }
  return use(static_cast<const uint32_t*>(column.data), [&column](uint32_t element) {
    return element < column.limit ? Value(column.base + element) : Value();
  });
}

// What the file holds of a row's column; nothing: NULL.
inline std::optional<int64_t> stored_value(const BoundColumn& column, size_t row) {
  return with_elements(column,
                       [row](const auto* elements, const auto& stored) { return stored(elements[row]); });
}

// All elements are equal. Of a table without rows they are not: there is no value to take.
bool is_constant(const BoundColumn& column, size_t rows);

// RowDigest over the first `columns` columns, a column at a time: that takes a third of the time that row by
// row does.
int64_t digest_of(const BoundTable& table, size_t columns);

}  // namespace lockstep::store::sqlite
