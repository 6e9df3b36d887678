// SPDX-License-Identifier: Apache-2.0
// The pages of a report as JSON, one function a page, each in a source of its name. docs/report-data.md says
// what each holds; where a page has nothing to show it says why instead.
#pragma once
#include <map>
#include <set>

#include "report/report_context.h"
#include "report/rows.h"
#include "report/waits.h"

namespace lockstep::report {

inline constexpr size_t kLossesMost = 1000;  // on a page

// Where an operation stands in the list of the page of operations.
using OperationPlaces = std::map<OperationKey, size_t>;
inline Json place_of(const OperationPlaces& places, OperationKey key) {
  const auto at = places.find(key);
  return at == places.end() ? Json(nullptr) : Json(at->second);
}

// operations_page.cc
inline constexpr size_t kOperationsMost = 64;
// What must be kept of the run before it is gone through: those that findings name, and some of all.
std::set<OperationKey> wanted_operations(const ReportContext& context);
// How many of the worst to keep.
size_t worst_operations_wanted(const std::set<OperationKey>& wanted);
// Fills `places`.
Json operations_page(const ReportContext& context, const WaitTable& waits, OperationPlaces& places);

// lateness_page.cc
std::vector<Row> lateness_rows(const ReportContext& context, const WaitTable& waits);
Json lateness_page(const ReportContext& context, const WaitTable& waits, const std::vector<Row>& rows,
                   const OperationPlaces& places);

// lateness_links.cc
Json links_beside(const ReportContext& context, const WaitTable& waits);

// verdict_page.cc
Json verdict_page(const ReportContext& context, const std::vector<Row>& rows, const OperationPlaces& places);

Json bandwidth_page(const ReportContext& context, const OperationPlaces& places);  // bandwidth_page.cc
Json topology_page(const ReportContext& context);                                  // topology_page.cc
Json network_page(const ReportContext& context);                                   // network_page.cc
Json steps_page(const ReportContext& context, const WaitTable& waits);             // steps_page.cc
Json processes_page(const ReportContext& context);                                 // processes_page.cc

}  // namespace lockstep::report
