// SPDX-License-Identifier: Apache-2.0
// Fills in what every finding about waiting shows: the ranks and their processes, the operation, how long the
// wait is, and the run's own cadence to compare it with. A wait that is suspicious but not yet certain
// becomes a warning, and says how much longer a recording would decide.
#include "analysis/hang/finding_builder.h"

#include <algorithm>

#include "analysis/finding_hosts.h"
#include "analysis/hang/calls/call_places.h"
#include "analysis/operation_name.h"
#include "base/text/wording.h"
#include "model/event_kind.h"

namespace lockstep::analysis::hang {

using wording::duration;

// What GPUs of those that are blamed, then of those that wait, have not come past, where their runtime says.
static void add_open_kernels(const JobState& job_state, const std::vector<uint32_t>& actors,
                             const Block& block, Finding& finding) {
  constexpr size_t kMost = 6;
  const model::Job& job = job_state.job();
  std::vector<uint32_t> all = actors;
  for (uint32_t actor : block.waiting) {
    if (std::find(all.begin(), all.end(), actor) == all.end()) all.push_back(actor);
  }
  size_t listed = 0;
  for (uint32_t row : all) {
    const Actor& actor = job_state.actor(row);
    for (size_t i = 0; i < job.losses.size() && listed < kMost; ++i) {
      const std::string_view detail = job.text(job.losses.detail[i]);
      if (job.losses.process[i] != actor.process || job.text(job.losses.kind[i]) != "open_gpu_work" ||
          detail.find(" in queue ") == std::string_view::npos)
        continue;
      ++listed;
      finding.evidence.push_back(
          (actor.rank >= 0 ? "rank " + std::to_string(actor.rank) : job.process_name(actor.process)) + ": " +
          std::string(detail));
    }
  }
}

Finding FindingBuilder::make(FindingId id, const Block& block, const std::vector<uint32_t>& actors,
                             size_t waiting) const {
  Finding finding(id);
  finding.severity = block.certain() ? Severity::kCritical : Severity::kWarning;
  // What it costs: the time of all who wait. Findings are ordered by it.
  finding.weight = static_cast<double>(block.waited_ns) * static_cast<double>(std::max<size_t>(waiting, 1));
  blame(actors, finding);
  finding.comm = job_.comm_name(block.comm);
  finding.comm_row = block.comm;
  if (block.process != model::kNoRow) {
    if (block.kind != Block::Kind::kInit) analysis::name_operation(job_, block.process, block.op, finding);
    if (auto since = job_.common_ns(block.process, block.since_ns)) finding.since_ns = since->ns;
    add_wait(block, waiting, finding);
  }
  add_open_kernels(job_state_, actors, block, finding);
  add_places(job_state_, block, finding.evidence);
  auto waited = static_cast<double>(block.waited_ns);
  finding.effect = Effect{.value = waited, .unit = "ns", .low = waited, .high = waited};
  return finding;
}

void FindingBuilder::blame(const std::vector<uint32_t>& actors, Finding& finding) const {
  for (uint32_t actor : actors) {
    if (job_state_.actor(actor).rank >= 0) finding.ranks.push_back(job_state_.actor(actor).rank);
    finding.who.push_back(who_is(actor));
    const model::JobProcess& process = job_.processes[job_state_.actor(actor).process];
    add_host(finding, job_.text(process.row.host));
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
}

void FindingBuilder::add_wait(const Block& block, size_t waiting, Finding& finding) const {
  const size_t inside = block.waiting.size();
  const std::string longest = inside == 1 ? "" : "; " + job_.process_name(block.process) + " longest";
  const std::string behind = waiting <= inside
                                 ? ""
                                 : "; " + wording::count(waiting - inside, "rank") +
                                       (waiting - inside == 1 ? " waits" : " wait") + " in other operations";
  // How long is the finding's effect.
  finding.evidence.push_back((behind.empty() ? "waiting: " : "waiting in it: ") + list(block.waiting) +
                             longest + behind);
  finding.evidence.push_back(block.patience.measured
                                 ? "longest gap between two operations before this wait: " +
                                       duration(block.patience.normal_ns)
                                 : "too few earlier operations to know how long a normal gap is");
  // What is suspicious is said as such, with what it would take to be sure.
  if (!block.certain()) {
    finding.needed_evidence =
        "the recording ends " + duration(block.waited_ns) +
        " after the wait began, too soon to tell late from stuck: " + duration(block.patience.certain_ns()) +
        " would tell";
  }
}

model::Who FindingBuilder::who_is(uint32_t actor) const {
  model::Who who = job_.who(job_state_.actor(actor).process);
  who.rank = job_state_.actor(actor).rank;
  return who;
}

std::string FindingBuilder::look_at_the_dead() const {
  return std::string("Check the last output of that process, dmesg (out-of-memory killer, ") +
         (job_.has_amd_gpus() ? "amdgpu" : "Xid") + " errors), and the launcher's exit codes.";
}

std::string FindingBuilder::look_at_the_gpu() const {
  return std::string("Check that GPU: ") +
         (job_.has_amd_gpus() ? "amd-smi, dmesg for errors of amdgpu" : "nvidia-smi, dmesg for Xid errors") +
         ", and what else runs on it.";
}

std::string FindingBuilder::look_at_the_gpus() const {
  return std::string("Check dmesg for ") +
         (job_.has_amd_gpus() ? "errors of amdgpu, and amd-smi" : "Xid errors, and nvidia-smi") +
         " on these GPUs; another kernel of the job may hold the GPU.";
}

std::string FindingBuilder::who(const std::vector<uint32_t>& actors) const {
  return actors.size() == 1 ? who_is(actors.front()).text() : list(actors);
}

std::string FindingBuilder::list(const std::vector<uint32_t>& actors) const {
  std::vector<int32_t> ranks;
  size_t unknown = 0;
  for (uint32_t actor : actors) {
    if (job_state_.actor(actor).rank >= 0)
      ranks.push_back(job_state_.actor(actor).rank);
    else
      ++unknown;
  }
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) return wording::count(unknown, "process of unknown rank");
  return wording::ranks(ranks) + (unknown == 0 ? "" : " and " + std::to_string(unknown) + " of unknown rank");
}

std::string FindingBuilder::comm(uint32_t comm) const { return analysis::comm_text(job_, comm); }

std::string FindingBuilder::operation(const Block& block) const {
  if (block.kind == Block::Kind::kInit) return "the creation of " + comm(block.comm);
  if (block.process == model::kNoRow) return comm(block.comm);
  return analysis::operation_name(job_, block.process, block.op).text();
}

std::string FindingBuilder::signature(const model::Signature& s, const model::Signature& beside) const {
  std::string text(job_.text(s.func));
  text += " of " + wording::bytes_beside(s.bytes, beside.bytes) + " " + std::string(job_.text(s.datatype));
  // With the blank: ReduceScatter has no root.
  bool rooted = text.starts_with("Broadcast") || text.starts_with("Reduce ");
  return rooted ? text + ", root " + std::to_string(s.root) : text;
}

std::string FindingBuilder::wait(const Block& block, size_t waiting, bool plural) const {
  return wording::count(waiting, "rank") + (waiting == 1 ? " has waited " : " have waited ") +
         duration(block.waited_ns) + (plural ? " for them" : " for it");
}

void FindingBuilder::add_followers(const std::vector<uint32_t>& followers,
                                   std::vector<std::string>& lines) const {
  if (followers.empty()) return;
  lines.push_back(list(followers) + (followers.size() == 1 ? " calls" : " call") +
                  " nothing more either: an earlier call may be queued behind that operation");
}

void FindingBuilder::add_state(uint32_t actor_row, const Block& block,
                               std::vector<std::string>& lines) const {
  const Actor& actor = job_state_.actor(actor_row);
  const model::JobProcess& process = job_.processes[actor.process];
  const std::string quiet = actor.quiet_ns > 0 ? duration(actor.quiet_ns) : "";
  bool is_quiet_stated = quiet.empty();
  std::string name =
      actor.rank >= 0 ? "rank " + std::to_string(actor.rank) : job_.process_name(actor.process);
  for (uint32_t row : process.members) {
    const model::Member& member = job_.members[row];
    if (member.comm != block.comm || job_state_.actor_of(row) != actor_row) continue;
    std::string line = name + " has called " +
                       (member.alignment == model::Member::Alignment::kNone ? "at least " : "") +
                       wording::count(job_.next_index(member), "collective") + " of " + comm(block.comm);
    if (member.ops > 0) {
      const model::JobOps& ops = process.ops;
      uint32_t newest = member.first + member.ops - 1;
      line += ", the newest (" + signature(job_.signatures[ops.signature[newest]]) + ")";
      if (ops.entered_ns(newest) != 0) {
        const std::string since = duration(actor.end_ns - ops.entered_ns(newest));
        line += " " + since + " before its recording ends";
        if (!is_quiet_stated && since == quiet) {
          line += ", and nothing since";
          is_quiet_stated = true;
        }
      }
    }
    lines.push_back(line);
    if (member.end_ns != 0)
      lines.push_back(name + " left the communicator " + duration(actor.end_ns - member.end_ns) +
                      " before its recording ends");
  }
  if (!is_quiet_stated)
    lines.push_back(name + " recorded nothing in the last " + quiet + " of its recording");
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
