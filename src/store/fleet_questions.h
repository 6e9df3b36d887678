// SPDX-License-Identifier: Apache-2.0
// What many runs in one store can be asked together. Questions only read, and have limits in rows and time;
// what is named by them is named of a whole fleet with a chance of error of one in a hundred.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/fleet.h"

namespace lockstep::store {

struct FleetColumn {
  enum class Kind : uint8_t {
    kText,     // any bytes
    kCount,    // an integer
    kShare,    // 1 = all
    kChance,   // likewise: of being wrong
    kHours,    // of one GPU
    kRate,     // GB/s
    kTime,     // ns since the Unix epoch; 0 unknown
    kSize,     // n: 2^(n-1) bytes up to 2^n
    kVersion,  // as ncclGetVersion gives it
    kSpan,     // ns; negative unknown
    kNumber,   // any
  };
  std::string_view name;
  Kind kind;
  int spare = 0;  // where there is no room for all: those with the largest number go first
};

struct FleetQuestion {
  std::string_view name;
  std::string_view title;  // what it lists
  std::string_view none;   // what no row means
  std::string_view sql;    // a SELECT for one database and some days; see fleet_sql
  std::span<const FleetColumn> columns;
  bool reads_rollups;        // runs that were pushed without them are not in it
  std::string_view about{};  // the option that says what it is about; empty: all runs
};
std::span<const FleetQuestion> fleet_questions();

inline constexpr size_t kMostFleetRows = 1000;
inline constexpr uint32_t kMostFleetDays = 3650;

struct FleetSubject {
  uint32_t days = 30;  // the last ones
  // Of a question with `about`: a host ("host"), two runs by name or number ("runs"), PyTorch's id of an
  // operation ("comms-id").
  std::vector<std::string> names{};
};

// The SELECT that a question is. Servers from 18.16 on understand it.
std::string fleet_sql(const FleetQuestion& question, const std::string& database,
                      const FleetSubject& subject);

struct FleetAnswer {
  std::string database;
  std::vector<std::vector<std::string>> rows;  // as many cells as the question has columns
  bool is_cut = false;                         // there are more than kMostFleetRows
  uint64_t without_rollups = 0;                // runs of these days that the question could not count
};

// All cells but kText are numbers. Errors as those of push().
Result<FleetAnswer> ask_fleet(const FleetQuestion& question, const FleetTarget& target,
                              const FleetSubject& subject);

// The database that a URL names.
Result<std::string> fleet_database(const std::string& url);

}  // namespace lockstep::store
