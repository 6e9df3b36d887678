// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/host_counters.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text/units.h"
#include "store/sqlite/trace_db_source.h"

namespace lockstep::store::sqlite {
namespace {

// What a sampler may have written behind the values so far.
bool is_plausible(const model::HostCounter& counter, const model::HostCounter::Value& next) {
  if (next.time_ns < 0 || next.time_ns > INT64_MAX / 2) return false;
  return counter.is_gauge || counter.values.empty() || next.value >= counter.values.back().value;
}

}  // namespace

Result<void> write_host_counters(const Database& database, model::TraceSource& source, uint64_t& rows) {
  LOCKSTEP_ASSIGN(Statement add_counter,
                  database.prepare("INSERT INTO host_counter VALUES (?, ?, ?, ?, ?, ?, ?)"));
  LOCKSTEP_ASSIGN(Statement add_sample, database.prepare("INSERT INTO host_sample VALUES (?, ?, ?)"));
  int64_t id = 0;
  std::optional<Error> error;
  const auto run = [&](Statement& statement) {
    const auto added = statement.run();
    if (!added)
      error = added.error();
    else
      rows += *added;
  };
  LOCKSTEP_TRY(source.host_counters([&](const model::HostCounter& counter) {
    if (error) return;
    add_counter.bind(1, id);
    add_counter.bind(2, std::string_view(counter.host));
    add_counter.bind(3, std::string_view(counter.kind));
    add_counter.bind(4, std::string_view(counter.device));
    add_counter.bind(5, std::string_view(counter.name));
    add_counter.bind(6, std::string_view(counter.unit));
    add_counter.bind(7, int64_t{counter.is_gauge});
    run(add_counter);
    for (const model::HostCounter::Value& at : counter.values) {
      if (error) return;
      add_sample.bind(1, id);
      add_sample.bind(2, at.time_ns);
      add_sample.bind(3, static_cast<int64_t>(at.value));
      run(add_sample);
    }
    ++id;
  }));
  if (error) return *error;
  return {};
}

Result<void> read_host_counters(const Database& database,
                                const model::TraceSource::HostCounterVisitor& visit) {
  for (const char* const table : {"host_counter", "host_sample"}) {
    LOCKSTEP_ASSIGN(const auto columns, database.columns(table));
    if (columns.empty()) return {};
  }
  LOCKSTEP_ASSIGN(
      Statement counters,
      database.prepare("SELECT id, host, kind, device, name, unit, is_gauge FROM host_counter ORDER BY id"));
  LOCKSTEP_ASSIGN(
      Statement samples,
      database.prepare("SELECT time_ns, value FROM host_sample WHERE counter = ? ORDER BY time_ns"));
  uint64_t impossible = 0;
  while (true) {
    LOCKSTEP_ASSIGN(const bool is_more, counters.step());
    if (!is_more) break;
    model::HostCounter counter;
    int column = 1;
    for (std::string* const text :
         {&counter.host, &counter.kind, &counter.device, &counter.name, &counter.unit})
      *text = counters.text(column++);
    counter.is_gauge = counters.integer(column) != 0;
    samples.bind(1, counters.integer(0));
    while (true) {
      LOCKSTEP_ASSIGN(const bool is_sample, samples.step());
      if (!is_sample) break;
      const model::HostCounter::Value value{samples.integer(0), static_cast<uint64_t>(samples.integer(1))};
      if (is_plausible(counter, value))
        counter.values.push_back(value);
      else
        ++impossible;
    }
    samples.reset();
    visit(counter);
  }
  if (impossible == 0) return {};
  return Error{ErrorCode::kInvalidInput,
               plural(impossible, "value") + " in host_sample that no sampler writes, left out",
               {}};
}

Result<void> TraceDbSource::host_counters(const HostCounterVisitor& visit) {
  auto read = read_host_counters(*database_, visit);
  if (!read && read.error().where.empty()) return Error{read.error().code, read.error().text, path_};
  return read;
}

}  // namespace lockstep::store::sqlite
