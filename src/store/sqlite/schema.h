// SPDX-License-Identifier: Apache-2.0
// The SQL of trace.db. Base tables come from the model's layouts; the rest is text in schema.cc.
#pragma once
#include <cstdint>
#include <string>

#include "store/sqlite/table_layout.h"

namespace lockstep::store::sqlite {

inline constexpr int64_t kApplicationId = 0x4c4b5354;  // "LKST", bytes 68..71 of the file
inline constexpr int64_t kSchemaVersion = 1;           // PRAGMA user_version; a reader refuses a newer one

// Texts with fixed numbers in `string`, which the views name by number. The names of event kinds follow: the
// text of kind k is number kFixedStrings - 1 + k.
enum FixedString : uint32_t {
  kEmptyText,
  kKernelExecution,
  kHostEnqueue,
  kUserMarker,
  kDomain,
  kCopy,
  kFixedStrings
};
inline constexpr const char* kFixedTexts[kFixedStrings] = {"",           "KernelExecution", "HostEnqueue",
                                                           "UserMarker", "lockstep",        "Copy"};

// CREATE TABLE for every model table (each column with its meaning as a comment) and for the tables of the
// file itself.
std::string table_sql();
// Run once all rows are in.
std::string index_sql();
// Views with readable text, rocpd tables and views, and what fills them. Run once all rows are in.
std::string view_sql();

}  // namespace lockstep::store::sqlite
