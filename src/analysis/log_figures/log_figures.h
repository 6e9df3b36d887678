// SPDX-License-Identifier: Apache-2.0
// A LogModel as the rows of tables: what is equal on many processes is one row.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_figures {

// Processes of one host that say the same of themselves.
struct HostRow {
  std::string host, version, driver, network, cards;  // empty: unknown
  std::vector<int32_t> ranks;                         // ascending; -1 left out
  uint64_t processes = 0, warnings = 0;
};
// By host, then by what they say.
std::vector<HostRow> host_rows(const readers::nccl_log::LogModel& model);

struct CommRow {
  std::string name;  // id as printed, "PARENT/CALL.COLOUR" of a split, or "?"
  int32_t ranks = -1, nodes = -1, coll_channels = -1, rings = -1, trees = -1;
  std::set<int32_t> present, completed, members;  // ranks in it; members: ranks of the job
  double init_seconds = -1;
};
// The largest first. Of figures that ranks report differently the largest is shown.
std::vector<CommRow> comm_rows(const readers::nccl_log::LogModel& model);

// Connections by transport: how many pairs of ranks, in one direction, over how many channels.
struct TransportRow {
  std::string via;  // "P2P/CUMEM", "NET/IB" without the card
  bool gdr = false;
  uint64_t pairs = 0, channels = 0;
};
std::vector<TransportRow> transport_rows(const readers::nccl_log::LogModel& model);

// "NET/IB" of "NET/IB/0(4)/GDRDMA/Shared".
std::string without_card(const readers::nccl_log::Connection& row);

struct SettingRow {
  std::string name, value;
  uint64_t processes = 0;
};
// Values of one setting are rows of their own, so that a difference between processes shows.
std::vector<SettingRow> setting_rows(const readers::nccl_log::LogModel& model);

}  // namespace lockstep::analysis::log_figures
