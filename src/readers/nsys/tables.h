// SPDX-License-Identifier: Apache-2.0
// The tables of an export of Nsight Systems, by name: of a SQLite file, or of a directory with a Parquet file
// each. Belongs to one thread.
#pragma once
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "readers/nsys/parquet.h"

namespace lockstep::readers::nsys {

// Names are those that Nsight Systems gives tables and columns. An export may be damaged or forged: cells are
// given as they are.
class Tables {
 public:
  virtual ~Tables() = default;
  // A table and all these columns of it.
  virtual bool has(std::string_view table, std::initializer_list<std::string_view> columns) const = 0;
  // Calls `take` for each row with the cells of these columns; a column or a table that is not there is
  // nothing. An error: what was given before it is good.
  virtual Result<void> read(std::string_view table, std::span<const std::string_view> columns,
                            const TakeRow& take) = 0;
  // What users call the export: its file or directory.
  virtual const std::string& path() const = 0;
};

Result<std::unique_ptr<Tables>> open_sqlite(const std::string& path);
// Of one directory.
std::unique_ptr<Tables> open_parquet(const std::vector<std::string>& paths);

}  // namespace lockstep::readers::nsys
