// SPDX-License-Identifier: Apache-2.0
// Feeds the reader of Parquet arbitrary bytes as a file, and asks for all columns that it says it has.
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/input_file.h"
#include "readers/nsys/parquet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::readers::nsys;
  const auto file = ParquetFile::open(lockstep::fuzz::input_file(data, size));
  if (!file) return 0;
  std::vector<std::string_view> columns;
  for (const ParquetColumn& column : file->columns()) columns.push_back(column.name);
  uint64_t sum = 0;
  const auto read = file->read(columns, [&](std::span<const Cell> row) {
    for (const Cell& cell : row) {
      for (const char c : cell.bytes) sum += static_cast<unsigned char>(c);
    }
  });
  return read && sum == UINT64_MAX ? 1 : 0;
}
