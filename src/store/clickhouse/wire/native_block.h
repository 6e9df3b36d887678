// SPDX-License-Identifier: Apache-2.0
// A block of ClickHouse's Native format: the number of columns and of rows, then of each column its name, its
// type and its values, packed. It is what the server parses fastest, and the only format that carries names
// and types, so that a table of another shape is an error and not wrong values.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::store::clickhouse {

enum class ColumnType : uint8_t {
  kUInt8,
  kUInt32,
  kUInt64,
  kInt32,
  kInt64,
  kFloat64,
  kDate,      // days since the epoch, at most 65,535
  kDateTime,  // seconds since the epoch
  kString,
  kInt32s,   // Array(Int32)
  kStrings,  // Array(String)
};
// As the server spells it, in CREATE TABLE and in blocks.
std::string_view type_text(ColumnType type);

struct Column {
  std::string_view name;
  ColumnType type;
};

// What proves that rows are in a table as they were made: for each column the sum of its numbers, or of its
// texts' bytes, or of its arrays' elements, modulo 2^64. Columns of kFloat64 and kDate stay 0.
using Sums = std::vector<uint64_t>;

// Rows of one table, value by value in the order of its columns. Texts may hold any bytes: none is part of a
// statement. One thread.
class BlockWriter {
 public:
  // The columns outlive it.
  explicit BlockWriter(std::span<const Column> columns);

  // Integers and days: as many low bytes as the column has.
  BlockWriter& number(uint64_t value);
  BlockWriter& real(double value);
  // Any length; the server's strings are bytes.
  BlockWriter& text(std::string_view value);
  BlockWriter& numbers(std::span<const int32_t> values);
  BlockWriter& texts(std::span<const std::string> values);

  size_t rows() const { return rows_; }
  // Of the values, without names, types, offsets and versions.
  size_t bytes() const { return bytes_; }
  // By column, over all rows so far.
  const Sums& sums() const { return sums_; }
  // Of names, types and values. Against chance, not against forgery; stored in tables, so it never changes.
  uint64_t digest() const;
  // The block, with one more column `version`, which is the same in all rows and no part of the digest.
  std::string encode(uint64_t version) const;

 private:
  struct Values {
    std::string packed;
    std::string offsets;  // of arrays: the elements up to the end of each row
    uint64_t elements = 0;
  };
  // Where the next value goes; the type is checked, as a value in another's place would shift all others.
  Values& next(ColumnType type);
  void done(size_t before, uint64_t sum);

  std::span<const Column> columns_;
  std::vector<Values> values_;
  Sums sums_;
  size_t column_ = 0, rows_ = 0, bytes_ = 0;
};

}  // namespace lockstep::store::clickhouse
