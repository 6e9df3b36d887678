// SPDX-License-Identifier: Apache-2.0
// What `lockstep logs` says: findings first, then what the logs say of processes, communicators, network and
// transports, and what of them was not understood.
#pragma once
#include <string>
#include <vector>

#include "analysis/finding.h"
#include "base/result.h"
#include "base/text/json_text.h"
#include "base/text/style.h"
#include "readers/nccl_log/log_model.h"

namespace lockstep::cli::logs {

struct LogReport {
  readers::nccl_log::LogModel model;
  std::vector<analysis::Finding> findings;
  std::vector<Error> troubles;  // what was named and could not be read
};

// `verbose`: all rows and all evidence, else as many as a screen takes.
std::string report_text(const LogReport& report, const Style& style, bool verbose);
Json report_json(const LogReport& report);

}  // namespace lockstep::cli::logs
