// SPDX-License-Identifier: Apache-2.0
#include "analysis/hang/draft.h"

#include <algorithm>

#include "analysis/hang/call_places.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"
#include "model/event_kind.h"

namespace lockstep::analysis::hang {

using wording::duration;

Finding Draft::make(FindingClass finding_class, std::string id, const Block& block,
                    const std::vector<uint32_t>& actors, size_t waiting) const {
  Finding finding;
  finding.id = std::move(id);
  finding.finding_class = finding_class;
  finding.severity = block.certain() ? Severity::kCritical : Severity::kWarning;
  finding.weight = static_cast<double>(block.waited_ns) * static_cast<double>(std::max<size_t>(waiting, 1));
  blame(actors, finding);
  finding.comm = job_.comm_name(block.comm);
  finding.comm_row = block.comm;
  if (block.process != model::kNoRow) {
    if (block.kind != Block::Kind::kInit) analysis::name_operation(job_, block.process, block.op, finding);
    if (auto since = job_.common_ns(block.process, block.since_ns)) finding.since_ns = since->ns;
    add_wait(block, finding);
  }
  add_places(scene_, block, finding.evidence);
  auto waited = static_cast<double>(block.waited_ns);
  finding.effect = Effect{.value = waited, .unit = "ns", .low = waited, .high = waited};
  return finding;
}

void Draft::blame(const std::vector<uint32_t>& actors, Finding& finding) const {
  for (uint32_t actor : actors) {
    if (scene_.actor(actor).rank >= 0) finding.ranks.push_back(scene_.actor(actor).rank);
    finding.who.push_back(who_is(actor));
    const model::JobProcess& process = job_.processes[scene_.actor(actor).process];
    std::string host(job_.text(process.row.host));
    if (!host.empty() && std::find(finding.hosts.begin(), finding.hosts.end(), host) == finding.hosts.end())
      finding.hosts.push_back(host);
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
}

void Draft::add_wait(const Block& block, Finding& finding) const {
  std::string first = job_.process_name(block.process);
  finding.evidence.push_back("waiting: " + list(block.waiting) + "; " + first + " first, for " +
                             duration(block.waited_ns));
  finding.evidence.push_back(block.patience.measured
                                 ? "the largest gap between two operations before: " +
                                       duration(block.patience.normal_ns)
                                 : "too few operations before it to know how long a gap is normal");
  if (!block.certain()) {
    finding.settle =
        "the recording ends " + duration(block.waited_ns) +
        " after the wait began, too soon to tell late from stuck: " + duration(block.patience.certain_ns()) +
        " would tell";
  }
}

model::Who Draft::who_is(uint32_t actor) const {
  model::Who who = job_.who(scene_.actor(actor).process);
  who.rank = scene_.actor(actor).rank;
  return who;
}

std::string Draft::who(const std::vector<uint32_t>& actors) const {
  return actors.size() == 1 ? who_is(actors.front()).text() : list(actors);
}

std::string Draft::list(const std::vector<uint32_t>& actors) const {
  std::vector<int32_t> ranks;
  size_t unknown = 0;
  for (uint32_t actor : actors) {
    if (scene_.actor(actor).rank >= 0)
      ranks.push_back(scene_.actor(actor).rank);
    else
      ++unknown;
  }
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) return wording::count(unknown, "process of unknown rank");
  return wording::ranks(ranks) + (unknown == 0 ? "" : " and " + std::to_string(unknown) + " of unknown rank");
}

std::string Draft::comm(uint32_t comm) const { return analysis::comm_text(job_, comm); }

std::string Draft::operation(const Block& block) const {
  if (block.kind == Block::Kind::kInit) return "the creation of " + comm(block.comm);
  if (block.process == model::kNoRow) return comm(block.comm);
  return analysis::operation_name(job_, block.process, block.op).text();
}

std::string Draft::signature(const model::Signature& s, const model::Signature& beside) const {
  std::string text(job_.text(s.func));
  text += " of " + wording::bytes_beside(s.bytes, beside.bytes) + " " + std::string(job_.text(s.datatype));
  bool rooted = text.starts_with("Broadcast") || text.starts_with("Reduce ");
  return rooted ? text + ", root " + std::to_string(s.root) : text;
}

std::string Draft::wait(const Block& block, size_t waiting, bool plural) const {
  return wording::count(waiting, "rank") + (waiting == 1 ? " waits for " : " wait for ") +
         (plural ? "them" : "it") + ", for " + duration(block.waited_ns);
}

void Draft::add_state(uint32_t actor_row, const Block& block, std::vector<std::string>& lines) const {
  const Actor& actor = scene_.actor(actor_row);
  const model::JobProcess& process = job_.processes[actor.process];
  std::string name =
      actor.rank >= 0 ? "rank " + std::to_string(actor.rank) : job_.process_name(actor.process);
  for (uint32_t row : process.members) {
    const model::Member& member = job_.members[row];
    if (member.comm != block.comm || scene_.actor_of(row) != actor_row) continue;
    std::string line = name + " has called " +
                       (member.alignment == model::Member::Alignment::kNone ? "at least " : "") +
                       wording::count(job_.next_index(member), "collective") + " of " + comm(block.comm);
    if (member.ops > 0) {
      const model::JobOps& ops = process.ops;
      uint32_t newest = member.first + member.ops - 1;
      line += ", the newest (" + signature(job_.signatures[ops.signature[newest]]) + ")";
      if (ops.entered_ns(newest) != 0)
        line += " " + duration(actor.end_ns - ops.entered_ns(newest)) + " before its recording ends";
    }
    lines.push_back(line);
    if (member.end_ns != 0)
      lines.push_back(name + " left the communicator " + duration(actor.end_ns - member.end_ns) +
                      " before its recording ends");
  }
  lines.push_back(name + ": last record " + duration(actor.quiet_ns) + " before its recording ends");
  const model::OpenCall* oldest = nullptr;
  for (const model::OpenCall& call : process.open_calls) {
    if (call.start_ns != 0 && (oldest == nullptr || call.start_ns < oldest->start_ns)) oldest = &call;
  }
  if (oldest == nullptr) return;
  std::string func(job_.text(oldest->func));
  lines.push_back(name + " is inside " + std::string(model::event_name(oldest->kind)) +
                  (func.empty() ? "" : " (" + func + ")") + " for " +
                  duration(actor.end_ns - oldest->start_ns));
}

}  // namespace lockstep::analysis::hang
