// SPDX-License-Identifier: Apache-2.0
// Damage takes from a file its say about the set-up, not about trouble. A changed digit turns a card, a rank
// or a communicator into another one, and a comparison across ranks would then blame whoever differs; but no
// damage makes a line that matches the whole pattern of a warning. Connections name communicators by row, so
// the rows that stay are renumbered.
#include "analysis/log_rules/soundness.h"

#include <algorithm>

namespace lockstep::analysis::log_rules {

using readers::nccl_log::CommPart;
using readers::nccl_log::Connection;
using readers::nccl_log::Fact;
using readers::nccl_log::FileState;
using readers::nccl_log::kNobody;
using readers::nccl_log::LogModel;

bool has_damage(const LogModel& model) {
  return std::any_of(model.states.begin(), model.states.end(),
                     [](const FileState& state) { return state.is_damaged(); });
}

LogModel without_damaged(const LogModel& model) {
  const auto is_of_damaged = [&](uint32_t file) { return model.states[file].is_damaged(); };
  const auto is_believed = [&](const Fact& fact) {
    return !is_of_damaged(fact.first.file) || fact.is_warning || fact.kind >= readers::nccl_log::kFirstError;
  };
  // Sums over all files stay: their lines were there, whichever file is damaged.
  LogModel sound = model;
  std::erase_if(sound.facts, [&](const Fact& fact) { return !is_believed(fact); });
  sound.facts_of_kind = {};
  for (uint32_t row = 0; row < sound.facts.size(); ++row)
    sound.facts_of_kind[static_cast<size_t>(sound.facts[row].kind)].push_back(row);
  sound.comms.clear();
  std::vector<uint32_t> row_of(model.comms.size(), kNobody);
  for (size_t row = 0; row < model.comms.size(); ++row) {
    const CommPart& part = model.comms[row];
    if (is_of_damaged(part.first.file)) continue;
    row_of[row] = static_cast<uint32_t>(sound.comms.size());
    sound.comms.push_back(part);
  }
  const auto is_of_damaged_file = [&](const auto& row) { return is_of_damaged(row.first.file); };
  std::erase_if(sound.connections, is_of_damaged_file);
  for (Connection& row : sound.connections) {
    if (row.comm != kNobody) row.comm = row_of[row.comm];
  }
  std::erase_if(sound.topology, is_of_damaged_file);
  return sound;
}

}  // namespace lockstep::analysis::log_rules
