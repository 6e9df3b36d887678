// SPDX-License-Identifier: Apache-2.0
// Packs rows into columns as they come: the format is by column, and so is the memory. A row costs no
// allocation of its own, and a block is put together by appending whole columns. Sums and sizes are kept on
// the way, since a batch is closed by its bytes and the store is checked by the sums.
#include "store/clickhouse/wire/native_block.h"

#include <bit>
#include <cstring>

#include "base/result.h"
#include "store/clickhouse/wire/digest.h"

namespace lockstep::store::clickhouse {
namespace {

static_assert(std::endian::native == std::endian::little, "values are packed as they lie in memory");

void add_varint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

void add_text(std::string_view text, std::string& bytes) {
  add_varint(text.size(), bytes);
  bytes += text;
}

void add_low_bytes(uint64_t value, size_t count, std::string& bytes) {
  char packed[sizeof value];
  std::memcpy(packed, &value, sizeof value);
  bytes.append(packed, count);
}

// Of a column of numbers; 0 of others.
size_t number_bytes(ColumnType type) {
  switch (type) {
    case ColumnType::kUInt8:
      return 1;
    case ColumnType::kDate:
      return 2;
    case ColumnType::kUInt32:
    case ColumnType::kInt32:
    case ColumnType::kDateTime:
      return 4;
    case ColumnType::kUInt64:
    case ColumnType::kInt64:
      return 8;
    default:
      return 0;
  }
}

// As toUInt64() has it.
uint64_t as_summed(uint64_t value, ColumnType type) {
  // Narrow numbers first, as the store has only their low bytes; signed ones are extended as the server does
  // it.
  if (type == ColumnType::kUInt8) return static_cast<uint8_t>(value);
  if (type == ColumnType::kUInt32 || type == ColumnType::kDateTime) return static_cast<uint32_t>(value);
  if (type == ColumnType::kInt32) return static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
  return type == ColumnType::kDate ? 0 : value;
}

}  // namespace

std::string_view type_text(ColumnType type) {
  constexpr std::string_view kTexts[] = {"UInt8",  "UInt32",       "UInt64",       "Int32",
                                         "Int64",  "Float64",      "Date",         "DateTime",
                                         "String", "Array(Int32)", "Array(String)"};
  return kTexts[static_cast<size_t>(type)];
}

BlockWriter::BlockWriter(std::span<const Column> columns)
    : columns_(columns), values_(columns.size()), sums_(columns.size()) {}

BlockWriter::Values& BlockWriter::next(ColumnType type) {
  LOCKSTEP_CHECK(columns_[column_].type == type);
  return values_[column_];
}

void BlockWriter::done(size_t before, uint64_t sum) {
  const Values& values = values_[column_];
  bytes_ += values.packed.size() - before;
  sums_[column_] += sum;
  // A row ends by itself with its last value: nobody can forget to end it.
  if (++column_ < columns_.size()) return;
  column_ = 0;
  ++rows_;
}

BlockWriter& BlockWriter::number(uint64_t value) {
  const ColumnType type = columns_[column_].type;
  const size_t count = number_bytes(type);
  LOCKSTEP_CHECK(count > 0);
  std::string& packed = values_[column_].packed;
  const size_t before = packed.size();
  add_low_bytes(value, count, packed);
  done(before, as_summed(value, type));
  return *this;
}

BlockWriter& BlockWriter::real(double value) {
  std::string& packed = next(ColumnType::kFloat64).packed;
  const size_t before = packed.size();
  add_low_bytes(std::bit_cast<uint64_t>(value), sizeof value, packed);
  done(before, 0);
  return *this;
}

BlockWriter& BlockWriter::text(std::string_view value) {
  std::string& packed = next(ColumnType::kString).packed;
  const size_t before = packed.size();
  add_text(value, packed);
  done(before, value.size());
  return *this;
}

BlockWriter& BlockWriter::numbers(std::span<const int32_t> values) {
  Values& column = next(ColumnType::kInt32s);
  const size_t before = column.packed.size();
  // Offsets are cumulative: the end of each row's elements, in 64 bits.
  column.elements += values.size();
  add_low_bytes(column.elements, sizeof column.elements, column.offsets);
  column.packed.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  done(before, values.size());
  return *this;
}

BlockWriter& BlockWriter::texts(std::span<const std::string> values) {
  Values& column = next(ColumnType::kStrings);
  const size_t before = column.packed.size();
  column.elements += values.size();
  add_low_bytes(column.elements, sizeof column.elements, column.offsets);
  for (const std::string& value : values) add_text(value, column.packed);
  done(before, values.size());
  return *this;
}

// Without `version`, which differs from push to push; names and types, so that a schema of another shape is
// another digest.
uint64_t BlockWriter::digest() const {
  Digest digest;
  for (size_t i = 0; i < columns_.size(); ++i) {
    digest.add(columns_[i].name);
    digest.add(type_text(columns_[i].type));
    digest.add(values_[i].offsets);
    digest.add(values_[i].packed);
  }
  return digest.value();
}

std::string BlockWriter::encode(uint64_t version) const {
  LOCKSTEP_CHECK(column_ == 0);
  std::string block;
  // Once: a block may have 32 MiB. Room for the versions, for one column of offsets, and for names and types.
  block.reserve(bytes_ + rows_ * (sizeof(uint64_t) * 2) + columns_.size() * 64);
  add_varint(columns_.size() + 1, block);
  add_varint(rows_, block);
  for (size_t i = 0; i < columns_.size(); ++i) {
    add_text(columns_[i].name, block);
    add_text(type_text(columns_[i].type), block);
    block += values_[i].offsets;
    block += values_[i].packed;
  }
  add_text("version", block);
  add_text(type_text(ColumnType::kUInt64), block);
  for (size_t i = 0; i < rows_; ++i) add_low_bytes(version, sizeof version, block);
  return block;
}

}  // namespace lockstep::store::clickhouse
