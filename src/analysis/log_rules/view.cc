// SPDX-License-Identifier: Apache-2.0
// Answers what many rules ask, from tables that are made once: with thousands of processes each rule would
// else go through all facts again.
#include "analysis/log_rules/view.h"

#include <algorithm>

#include "base/text/wording.h"
#include "base/utf8.h"

namespace lockstep::analysis::log_rules {

static std::string shortened(std::string_view text, size_t most) {
  return std::string(cut_utf8(text, most)) + (text.size() > most ? "..." : "");
}

View::View(const LogModel& model)
    : model_(model),
      torch_(model),
      worlds_(model.processes.size()),
      spans_nodes_(model.processes.size()),
      over_sockets_(model.processes.size()),
      settings_(model.processes.size()),
      facts_of_process_(model.processes.size()) {
  for (uint32_t row = 0; row < model.facts.size(); ++row) {
    if (model.facts[row].process != kNobody) facts_of_process_[model.facts[row].process].push_back(row);
  }
  std::vector<int32_t> most(model.processes.size(), 0);
  for (const CommPart& part : model.comms) {
    if (part.nodes > 1) spans_nodes_[part.process] = true;
    if (!part.group.empty()) groups_[part.group].push_back(&part);
    // A process is in its job's communicator and in those of groups; the largest tells jobs apart.
    if (part.ranks <= most[part.process]) continue;
    most[part.process] = part.ranks;
    worlds_[part.process] = part.group;
  }
  for (const Connection& connection : model.connections) {
    if (connection.transport != Transport::kNet) continue;
    spans_nodes_[connection.process] = true;
    if (connection.via.starts_with("NET/Socket")) over_sockets_[connection.process] = true;
  }
  for (const Fact* fact : facts(LineKind::kEnvironment)) {
    if (fact->process != kNobody) settings_[fact->process][fact->value(0)] = fact;
  }
}

std::vector<const Fact*> View::facts(LineKind kind) const {
  std::vector<const Fact*> found;
  for (const uint32_t row : model_.of(kind)) found.push_back(&model_.facts[row]);
  return found;
}

std::vector<const Fact*> View::facts(LineKind kind, uint32_t process) const {
  std::vector<const Fact*> found;
  for (const uint32_t row : facts_of_process_[process]) {
    if (model_.facts[row].kind == kind) found.push_back(&model_.facts[row]);
  }
  return found;
}

const Fact* View::first(LineKind kind, uint32_t process) const {
  for (const uint32_t row : facts_of_process_[process]) {
    if (model_.facts[row].kind == kind) return &model_.facts[row];
  }
  return nullptr;
}

const Fact* View::setting(uint32_t process, std::string_view name) const {
  const auto found = settings_[process].find(name);
  return found == settings_[process].end() ? nullptr : found->second;
}

bool View::uses_sockets(uint32_t process) const {
  const Fact* network = first(LineKind::kNetworkUsed, process);
  // Logs that begin after the setup name no network; their connections still do.
  if (network == nullptr) return over_sockets_[process];
  return network->value(0) == "Socket" || network->value(0) == "FastSocket";
}

std::string View::who(const std::set<uint32_t>& processes) const {
  std::set<int32_t> ranks;
  for (const uint32_t process : processes) ranks.insert(model_.processes[process].rank);
  // An unknown rank is -1 and sorts first: then none is named, as the list would not be whole.
  if (!ranks.empty() && *ranks.begin() >= 0) return wording::ranks({ranks.begin(), ranks.end()});
  if (processes.empty()) return "a process";
  if (processes.size() != 1) return wording::count(processes.size(), "process");
  const auto& process = model_.processes[*processes.begin()];
  if (process.host.empty()) return "a process that the log does not name";
  return "process " + std::to_string(process.pid) + " of " + process.host;
}

std::string View::cite(const Evidence& evidence) const {
  constexpr size_t kShown = 240;
  return model_.files[evidence.file] + ':' + std::to_string(evidence.line) + ": " +
         shortened(evidence.text, kShown);
}

void prove(const View& view, const Evidence& evidence, Hit& hit) {
  if (!hit.lines.emplace(evidence.file, evidence.line).second) return;
  if (hit.evidence.size() < Hit::kEvidenceMost) {
    hit.evidence.push_back(view.cite(evidence));
  } else {
    ++hit.more;
  }
}

void add(const View& view, const Fact& fact, Hit& hit) {
  if (fact.process != kNobody) hit.processes.insert(fact.process);
  if (hit.values.empty()) hit.values = fact.values;
  prove(view, fact.first, hit);
}

// Of what stands before the name.
static size_t index_values(const Fact& fact) { return fact.values.size() > 3 ? 1 : 0; }
std::string interface_of(const Fact& fact) { return fact.value(index_values(fact)); }
std::string address_of(const Fact& fact) { return fact.value(index_values(fact) + 1); }

std::string warning_text(const Fact& fact) {
  constexpr size_t kShown = 160;
  static constexpr std::string_view kLevels[] = {"NCCL WARN ", "NCCL ERROR ", "NCCL ABORT "};
  std::string text = fact.first.text;
  for (const std::string_view level : kLevels) {
    if (const size_t at = text.find(level); at != std::string::npos) text.erase(0, at + level.size());
  }
  return shortened(text, kShown);
}

void add_camps(const View& view, const Camps& camps, Hit& hit) {
  for (const auto& [value, camp] : camps) {
    hit.processes.insert(camp.processes.begin(), camp.processes.end());
    if (hit.evidence.size() >= Hit::kEvidenceMost) {
      ++hit.more;
      continue;
    }
    hit.evidence.push_back(view.who(camp.processes) + ": " + value +
                           (camp.proof == nullptr ? std::string() : "; " + view.cite(camp.proof->first)));
  }
}

}  // namespace lockstep::analysis::log_rules
