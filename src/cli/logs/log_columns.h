// SPDX-License-Identifier: Apache-2.0
// The columns of what logs say, for the tables as for `--json`.
#pragma once
#include <string>
#include <utility>

#include "analysis/log_figures/log_figures.h"
#include "cli/kit/columns.h"
#include "readers/nccl_log/log_model.h"

namespace lockstep::cli::logs {

void show_host(const analysis::log_figures::HostRow& row, Columns& out);
void show_comm(const analysis::log_figures::CommRow& row, Columns& out);
void show_transport(const analysis::log_figures::TransportRow& row, Columns& out);
void show_algorithm(const std::pair<const std::string, readers::nccl_log::AlgorithmUse>& row, Columns& out);
void show_setting(const analysis::log_figures::SettingRow& row, Columns& out);

// "0-3 and 7", "-" of none.
std::string rank_list(const std::vector<int32_t>& ranks);

}  // namespace lockstep::cli::logs
