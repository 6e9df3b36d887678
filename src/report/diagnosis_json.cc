// SPDX-License-Identifier: Apache-2.0
#include "report/diagnosis_json.h"
#include "input/run_json.h"

#include <algorithm>

#include "run/liveness.h"

namespace lockstep::report {
namespace {

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json text_json(std::string_view text) { return text.empty() ? Json(nullptr) : Json(std::string(text)); }

Json effect_json(const std::optional<analysis::Effect>& effect) {
  if (!effect) return nullptr;
  return {{"value", effect->value}, {"unit", effect->unit}, {"low", effect->low}, {"high", effect->high}};
}

// Logs and snapshots hold no processes: of them only the ranks and hosts are known that they are about.
void add_inputs(const verdict::Evidence& evidence, Json& list) {
  if (!evidence.job) {
    for (const auto& [rank, host] : evidence.hosts)
      list.push_back({{"source", evidence.source}, {"rank", rank}, {"host", text_json(host)}});
    return;
  }
  const model::Job& job = *evidence.job;
  for (uint32_t i = 0; i < job.processes.size(); ++i) {
    const model::JobProcess& process = job.processes[i];
    const model::Process& row = process.row;
    const model::Who who = job.who(i);
    list.push_back({{"source", evidence.source},
                    {"rank", known(row.rank)},
                    {"host", job.text(row.host)},
                    {"pid", row.pid},
                    {"device", known(who.device)},
                    {"pci", text_json(who.pci)},
                    {"state", row.closed != 0 ? "closed" : "not closed"},
                    {"liveness", run::liveness_text(process.liveness)},
                    {"first_ns", row.first_ns},
                    {"last_ns", row.last_ns},
                    {"heartbeat_ns", row.heartbeat_ns},
                    {"ops", process.ops.size()},
                    {"lost", process.lost}});
  }
}

// Where an offset is given: the ends of its pieces and some between, on the host's clock.
constexpr size_t kKnots = 5;

// At a few of the knots.
template <class Visit>
void for_some(const std::vector<model::HostClock::Knot>& knots, Visit&& visit) {
  // A clock of a long run has thousands of knots. The first and the last are always among those that are
  // shown.
  size_t count = std::min(knots.size(), kKnots);
  for (size_t i = 0; i < count; ++i) visit(knots[count < 2 ? 0 : i * (knots.size() - 1) / (count - 1)]);
}

void put_bounds(Json& row, const std::string& prefix, const model::HostClock::Knot* knot) {
  row[prefix + "offset_ns"] =
      knot == nullptr ? Json(nullptr) : Json(knot->low + (knot->high - knot->low) / 2);
  // Rounded up, so that the interval that is printed holds the one that was proved.
  row[prefix + "half_width_ns"] = knot == nullptr ? Json(nullptr) : Json((knot->high - knot->low + 1) / 2);
}

int64_t newest_record(const model::Job& job, uint32_t host) {
  int64_t newest_ns = 0;
  for (const model::JobProcess& process : job.processes) {
    if (process.host == host) newest_ns = std::max(newest_ns, process.row.last_ns);
  }
  return newest_ns;
}

void add_clocks(const verdict::Evidence& evidence, Json& list) {
  const model::Job& job = *evidence.job;
  for (uint32_t i = 0; i < job.hosts.size(); ++i) {
    const model::JobHost& host = job.hosts[i];
    // Of a host without a boot id nothing is known, as job/clock has it.
    const bool is_known = i == 0 || !job.text(host.boot_id).empty();
    const Json same_boot = is_known ? Json(host.boot_id == job.hosts[0].boot_id) : Json(nullptr);
    static constexpr model::HostClock::Knot kSame{};
    auto add = [&](int64_t at_ns, const model::HostClock::Knot* offset,
                   const model::HostClock::Knot* measured) {
      Json row = {
          {"source", evidence.source}, {"host", job.text(host.name)}, {"boot_id", job.text(host.boot_id)},
          {"reference", i == 0},       {"same_boot", same_boot},      {"at_ns", at_ns}};
      put_bounds(row, "", offset);
      put_bounds(row, "measured_", measured);
      row["contradictions"] = host.contradictions;
      list.push_back(std::move(row));
    };
    const model::HostClock::Knot* constant = host.clock.is_same() ? &kSame : nullptr;
    // Either the clock has proved bounds, or it has none. A clock of the reference's own boot has offset 0;
    // where it was measured all the same, that is a check of the method.
    if (!host.clock.knots().empty()) {
      for_some(host.clock.knots(), [&](const auto& knot) { add(knot.at_ns, &knot, nullptr); });
    } else if (host.measured.knots().empty()) {
      add(newest_record(job, i), constant, nullptr);
    } else {
      for_some(host.measured.knots(), [&](const auto& knot) { add(knot.at_ns, constant, &knot); });
    }
  }
}

void add_matches(const verdict::Evidence& evidence, Json& list) {
  const model::Job& job = *evidence.job;
  for (uint32_t i = 0; i < evidence.matches.size(); ++i) {
    const model::JobComm& comm = job.comms[i];
    Json unmatched = Json::object();
    for (size_t reason = 0; reason < job::match::kReasons; ++reason) {
      // Reasons without operations are left out: a program that sums them needs no list of all reasons.
      if (uint64_t count = evidence.matches[i].unmatched[reason]; count > 0)
        unmatched[std::string(reason_text(static_cast<job::match::Reason>(reason)))] = count;
    }
    // A place without a member is a rank that left no file; members without a rank have no place.
    auto present = static_cast<size_t>(std::count_if(comm.members.begin(), comm.members.end(),
                                                     [](uint32_t row) { return row != model::kNoRow; }));
    list.push_back({{"source", evidence.source},
                    {"comm", job.comm_name(i)},
                    {"id", id_json(comm.comm_id)},
                    {"ranks", known(comm.ranks)},
                    {"present", present + comm.unranked.size()},
                    {"matched", evidence.matches[i].matched},
                    {"unmatched", std::move(unmatched)}});
  }
}

// A communicator that two kinds of evidence know under different names.
Json links_json(const verdict::DiagnosedRun& run) {
  Json list = Json::array();
  for (const verdict::join::CommLink& link : run.links) {
    const auto side = [&](size_t evidence, uint32_t comm) -> Json {
      const model::Job& job = *run.evidence[evidence].job;
      return {{"source", run.evidence[evidence].source},
              {"comm", job.comm_name(comm)},
              {"id", id_json(job.comms[comm].comm_id)}};
    };
    list.push_back({{"of", {side(link.a, link.a_comm), side(link.b, link.b_comm)}},
                    {"by", verdict::join::text(link.by)},
                    {"agreeing", link.agreeing},
                    {"compared", link.compared}});
  }
  return list;
}

Json losses_of_all(const verdict::DiagnosedRun& run) {
  input::RunOverview whole;
  whole.losses = run.troubles;
  Json list = input::losses_json(whole);
  for (const verdict::Evidence& evidence : run.evidence) {
    for (Json& loss : input::losses_json(verdict::losses_of(evidence))) {
      loss["source"] = evidence.source;
      list.push_back(std::move(loss));
    }
  }
  return list;
}

Json who_json(const analysis::Finding& finding) {
  Json list = Json::array();
  for (const model::Who& who : finding.who) {
    list.push_back({{"rank", known(who.rank)},
                    {"host", text_json(who.host)},
                    {"pid", who.pid > 0 ? Json(who.pid) : Json(nullptr)},
                    {"device", known(who.device)},
                    {"pci", text_json(who.pci)},
                    {"text", who.text()}});
  }
  return list;
}

}  // namespace

Json finding_json(const analysis::Finding& finding) {
  return {{"id", id_text(finding.id)},
          {"class", class_text(class_of(finding.id))},
          {"severity", severity_text(finding.severity)},
          {"statement", finding.statement},
          {"ranks", finding.ranks},
          {"hosts", finding.hosts},
          {"who", who_json(finding)},
          {"comm", text_json(finding.comm)},
          {"func", text_json(finding.func)},
          {"op_index", optional_json(finding.op_index)},
          {"operation", text_json(finding.operation)},
          {"torch_comms_id", finding.comms_id ? Json(std::to_string(*finding.comms_id)) : Json(nullptr)},
          {"since", optional_json(finding.since_ns)},
          {"effect", effect_json(finding.effect)},
          {"evidence", finding.evidence},
          {"advice", finding.advice},
          {"next", finding.next},
          {"needed_evidence", finding.needed_evidence},
          {"sources", finding.sources}};
}

Json diagnosis_json(const verdict::DiagnosedRun& run) {
  Json findings = Json::array();
  for (const analysis::Finding& finding : run.diagnosis.findings) findings.push_back(finding_json(finding));
  const analysis::Finding* verdict = run.verdict();
  Json inputs = Json::array(), clocks = Json::array(), matches = Json::array();
  for (const verdict::Evidence& evidence : run.evidence) {
    add_inputs(evidence, inputs);
    if (!evidence.job) continue;
    add_clocks(evidence, clocks);
    add_matches(evidence, matches);
  }
  return {{"schema", "lockstep.diagnose.v1"},
          {"verdict", verdict == nullptr ? Json(nullptr) : finding_json(*verdict)},
          {"findings", std::move(findings)},
          {"losses", losses_of_all(run)},
          {"inputs", std::move(inputs)},
          {"clock", std::move(clocks)},
          {"match", std::move(matches)},
          {"links", links_json(run)}};
}

}  // namespace lockstep::report
