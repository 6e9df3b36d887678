// SPDX-License-Identifier: Apache-2.0
// A Parquet file as Nsight Systems writes one: flat columns of numbers and bytes, read column by column
// without trusting it. Read are pages of both versions, plain and with dictionaries, uncompressed or packed
// by Snappy, gzip or zstd. Columns that are nested or repeated are not offered; what else a file may hold is
// an error that names it. Belongs to one thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_file.h"
#include "base/result.h"

namespace lockstep::readers::nsys {

// One value of a row: nothing, a whole number, or bytes. Numbers of other types are nothing.
struct Cell {
  enum class Kind : uint8_t { kNone, kInteger, kBytes };
  Kind kind = Kind::kNone;
  int64_t integer = 0;
  std::string_view bytes;  // until the next row

  int64_t or_zero() const { return kind == Kind::kInteger ? integer : 0; }
};
using TakeRow = std::function<void(std::span<const Cell>)>;

struct ParquetColumn {
  std::string name;
  int32_t type = 0;  // as the format numbers physical types
  bool is_optional = false;
};

// One column of one row group. All of these are the file's numbers, checked against its size when it is read.
struct ParquetChunk {
  uint64_t offset = 0, bytes = 0;  // of its pages in the file
  int32_t codec = 0;
  uint64_t values = 0;
};

struct ParquetGroup {
  uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // by column
};

class ParquetFile {
 public:
  static bool is_parquet(std::span<const std::byte> first_bytes);
  // Reads the footer. The error says what the file is not, or what of it is not read.
  static Result<ParquetFile> open(const std::string& path);

  // In the order of the schema. One that repeats has an empty name.
  const std::vector<ParquetColumn>& columns() const { return columns_; }
  // Calls `take` for each row with the cells of these columns, in the order of the file. A column that the
  // file lacks is nothing in each row. An error: what was given before it is good.
  Result<void> read(std::span<const std::string_view> columns, const TakeRow& take) const;

 private:
  explicit ParquetFile(InputFile file) : file_(std::move(file)) {}

  InputFile file_;
  std::vector<ParquetColumn> columns_;
  std::vector<ParquetGroup> groups_;
};

}  // namespace lockstep::readers::nsys
