// SPDX-License-Identifier: Apache-2.0
// What rules ask a LogModel, and how they answer.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/finding.h"
#include "analysis/log_rules/watchdog.h"
#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_rules {

using readers::nccl_log::CommPart;
using readers::nccl_log::Connection;
using readers::nccl_log::Evidence;
using readers::nccl_log::Fact;
using readers::nccl_log::kNobody;
using readers::nccl_log::LineKind;
using readers::nccl_log::LogModel;
using readers::nccl_log::Transport;

// What a rule found. The row's text says the rest.
struct Hit {
  static constexpr size_t kEvidenceMost = 6;

  std::set<uint32_t> processes;
  std::vector<int32_t> ranks;                     // blamed; empty: those of the processes
  std::vector<std::string> evidence;              // at most kEvidenceMost
  uint64_t more = 0;                              // lines beyond those
  std::set<std::pair<uint32_t, uint64_t>> lines;  // file and line of all
  std::string what;                               // stands for {what} in the row's text
  std::vector<std::string> values;                // {1}, {2}, ... in the row's text
  std::optional<Severity> severity;               // where it is not the row's
  std::string_view advice;                        // the same; of static storage
  std::optional<Effect> effect;
  std::string comm, func;  // as in a finding
  std::optional<uint64_t> op_index;
  std::string needed_evidence;
};

inline std::optional<Hit> unless_empty(Hit hit) {
  if (hit.evidence.empty()) return std::nullopt;
  return hit;
}

class View {
 public:
  // Keeps a reference to the model, which must live as long, and to its strings. Costs one pass over the
  // model.
  explicit View(const LogModel& model);

  const LogModel& model() const { return model_; }
  uint32_t process_count() const { return static_cast<uint32_t>(model_.processes.size()); }
  const TorchJob& torch() const { return torch_; }
  // In the order of the model.
  std::vector<const Fact*> facts(LineKind kind) const;
  std::vector<const Fact*> facts(LineKind kind, uint32_t process) const;
  // Null: the process never said it. `process` must be a row of the model, not kNobody.
  const Fact* first(LineKind kind, uint32_t process) const;
  // The last word on NCCL_<name>; null: the process never said.
  const Fact* setting(uint32_t process, std::string_view name) const;
  // Largest communicator of a process, by its group; empty: unknown.
  const std::string& world(uint32_t process) const { return worlds_[process]; }
  // Parts of each communicator that can be distinguished from others.
  const std::map<std::string, std::vector<const CommPart*>>& groups() const { return groups_; }
  // A communicator of it has several nodes, or a connection of it goes over the network.
  bool spans_nodes(uint32_t process) const { return spans_nodes_[process]; }
  // NCCL's network is its own TCP one, or another over TCP.
  bool uses_sockets(uint32_t process) const;
  // "ranks 0-3", or processes where ranks are unknown.
  std::string who(const std::set<uint32_t>& processes) const;
  std::string cite(const Evidence& evidence) const;  // "FILE:LINE: text"

 private:
  const LogModel& model_;
  TorchJob torch_;
  std::vector<std::string> worlds_;
  std::vector<bool> spans_nodes_, over_sockets_;
  std::map<std::string, std::vector<const CommPart*>> groups_;
  std::vector<std::map<std::string, const Fact*, std::less<>>> settings_;
  std::vector<std::vector<uint32_t>> facts_of_process_;
};

// Adds a line to what proves a hit; one that holds several facts is one proof.
void prove(const View& view, const Evidence& evidence, Hit& hit);
// Adds a fact to a hit: its process, and its line as evidence.
void add(const View& view, const Fact& fact, Hit& hit);

// Of a Bootstrap line, in which a bracketed index may stand before the name.
std::string interface_of(const Fact& fact);
std::string address_of(const Fact& fact);

// What a warning says, without its head.
std::string warning_text(const Fact& fact);

// Values that members of one communicator do not share: value -> who has it, with a line that says so.
struct Camp {
  std::set<uint32_t> processes;
  const Fact* proof = nullptr;  // null: nothing says it
};
using Camps = std::map<std::string, Camp>;
void add_camps(const View& view, const Camps& camps, Hit& hit);

}  // namespace lockstep::analysis::log_rules
