// SPDX-License-Identifier: Apache-2.0
// A run as the one JSON object that the report's page shows: docs/report-data.md.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "verdict/diagnosed_run.h"

namespace lockstep::report {

inline constexpr int kDataVersion = 3;

struct DataRequest {
  std::vector<std::string> paths;     // as the user named them
  int64_t made_ns = 0;                // now, ns since the epoch
  std::optional<int64_t> refresh_ns;  // served: how soon to ask again
};
// `live` follows from the run and from whether it is served.
Json report_data(const verdict::DiagnosedRun& run, const DataRequest& request);
// Of a run that cannot be read yet: it has begun and holds no file.
Json waiting_data(const std::string& why, const DataRequest& request);
// Whether a process of the run may still write: it runs here, or its capture library was alive in the last
// minute.
bool may_go_on(const verdict::DiagnosedRun& run, int64_t now_ns);

}  // namespace lockstep::report
