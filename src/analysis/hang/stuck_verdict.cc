// SPDX-License-Identifier: Apache-2.0
// Decides who is to blame for an operation that all ranks have joined and that does not end. Open network
// transfers are asked first: each names the step that it waits for, and the wait that no other transfer
// explains is the cause. A rank whose kernel has not begun comes before that, since its peers' transfers wait
// for its buffers. With neither, only the operation can be named.
#include <algorithm>
#include <optional>
#include <tuple>

#include "analysis/hang/finding_builder.h"
#include "analysis/hang/verdicts.h"
#include "base/text/wording.h"

namespace lockstep::analysis::hang {
namespace {

using model::StepWait;

constexpr size_t kMostSteps = 8;  // named in the evidence

const char* wait_text(StepWait wait, bool is_send) {
  switch (wait) {
    case StepWait::kGpu:
      return is_send ? "the GPU has not produced the data" : "the GPU has not taken the data";
    case StepWait::kPeer:
      return "the receiver has not posted a buffer, or the network refuses the data";
    case StepWait::kSend:
      return "sent but not confirmed";
    case StepWait::kReceive:
      return "nothing has arrived";
    case StepWait::kFlush:
      return "the data is not flushed to the GPU";
    case StepWait::kPosted:
      break;
  }
  return "no request was free";
}

// A stuck transfer by its two ends, ranks of the communicator.
struct Transfer {
  int32_t source, target;
  uint16_t channel;
  const StuckStep* end;
  bool is(const Transfer& other) const {
    return source == other.source && target == other.target && channel == other.channel;
  }
};

class NetworkVerdict {
 public:
  NetworkVerdict(const JobState& job_state, const Block& block, const std::vector<StuckStep>& steps)
      : job_state_(job_state), job_(job_state.job()), block_(block) {
    for (const StuckStep& step : steps) {
      // Each end reports the transfer for itself; by source and target the two reports of one are found.
      int32_t own = job_.members[step.member].rank;
      transfers_.push_back({step.step->is_send ? own : step.step->peer,
                            step.step->is_send ? step.step->peer : own, step.step->channel, &step});
    }
  }

  // The transfer that the others follow from: what the network itself holds comes before what waits for a
  // rank, and what stopped first before what stopped later.
  const Transfer* first_cause() const {
    const Transfer* first = nullptr;
    for (const Transfer& transfer : transfers_) {
      if (blame(transfer) < 0) continue;
      if (first == nullptr || key(transfer) < key(*first)) first = &transfer;
    }
    return first;
  }
  // The rank whose move a transfer waits for; kNoRow: the network's, or nobody knows whose.
  uint32_t awaited(const Transfer& transfer) const {
    const model::OpenStep& step = *transfer.end->step;
    switch (step.wait) {
      case StepWait::kGpu:
        return actor(step.is_send ? transfer.source : transfer.target);
      case StepWait::kPeer:
        return actor(transfer.target);
      case StepWait::kReceive:
        return other_end(transfer) == nullptr ? actor(transfer.source) : model::kNoRow;
      case StepWait::kSend:
      case StepWait::kFlush:
      case StepWait::kPosted:
        break;
    }
    return model::kNoRow;
  }
  bool is_gpu(const Transfer& transfer) const { return transfer.end->step->wait == StepWait::kGpu; }
  const std::vector<Transfer>& transfers() const { return transfers_; }
  // Of a rank of the communicator; kNoRow: it left no file.
  uint32_t actor(int32_t rank) const {
    const auto& members = job_.comms[block_.comm].members;
    const auto at = static_cast<size_t>(rank);
    return rank < 0 || at >= members.size() || members[at] == model::kNoRow
               ? model::kNoRow
               : job_state_.actor_of(members[at]);
  }
  // The ends whose files are incomplete: the transfer may have gone on there.
  std::vector<uint32_t> torn_ends(const Transfer& transfer) const {
    std::vector<uint32_t> torn;
    for (const int32_t rank : {transfer.source, transfer.target}) {
      const uint32_t end = actor(rank);
      if (end != model::kNoRow && job_state_.torn(job_state_.actor(end).process)) torn.push_back(end);
    }
    std::sort(torn.begin(), torn.end());
    return torn;
  }

  std::string text(const Transfer& transfer) const {
    const model::OpenStep& step = *transfer.end->step;
    return "rank " + rank(transfer.source) + " to rank " + rank(transfer.target) + ", channel " +
           std::to_string(transfer.channel) + ", step " + std::to_string(step.step) +
           (step.steps > 0 ? " of " + std::to_string(step.steps) : "") + ", seen by the " +
           (step.is_send ? "sender" : "receiver") + ": " + wait_text(step.wait, step.is_send) + ", for " +
           wording::duration(transfer.end->waited_ns);
  }
  std::string rank(int32_t in_comm) const {
    int32_t global = job_state_.global_rank(block_.comm, in_comm);
    return global >= 0 ? std::to_string(global)
                       : std::to_string(in_comm) + " of " + job_.comm_name(block_.comm);
  }

 private:
  std::tuple<int, int32_t, int64_t> key(const Transfer& transfer) const {
    return {blame(transfer), transfer.end->step->step, -transfer.end->waited_ns};
  }

  const Transfer* other_end(const Transfer& transfer) const {
    auto at = std::find_if(transfers_.begin(), transfers_.end(), [&](const Transfer& other) {
      return other.is(transfer) && other.end->step->is_send != transfer.end->step->is_send;
    });
    return at == transfers_.end() ? nullptr : &*at;
  }

  // How directly a transfer shows the cause: 0 most; negative: it waits for another one.
  int blame(const Transfer& transfer) const {
    const Transfer* other = other_end(transfer);
    switch (transfer.end->step->wait) {
      case StepWait::kSend:
      case StepWait::kFlush:
        return 0;
      case StepWait::kPeer:
        return 1;
      case StepWait::kReceive:
      case StepWait::kPosted:
        if (other == nullptr) return 2;
        // A sender that is further has sent it; one that is not shows the cause itself.
        // A step is a place in the transfer's own count, equal on both ends.
        return other->end->step->step > transfer.end->step->step ? 0 : -1;
      case StepWait::kGpu:
        return starves(transfer) ? -1 : 3;
    }
    return -1;
  }

  // A GPU without data to send, because it has not received so far.
  bool starves(const Transfer& transfer) const {
    if (!transfer.end->step->is_send) return false;
    return std::any_of(transfers_.begin(), transfers_.end(), [&](const Transfer& other) {
      return !other.end->step->is_send && other.target == transfer.source &&
             other.channel == transfer.channel && other.end->step->step <= transfer.end->step->step &&
             (other.end->step->wait == StepWait::kReceive || other.end->step->wait == StepWait::kPosted);
    });
  }

  const JobState& job_state_;
  const model::Job& job_;
  const Block& block_;
  std::vector<Transfer> transfers_;
};

Finding network_finding(const JobState& job_state, const Block& block, size_t waiting,
                        const NetworkVerdict& network, const Transfer& cause) {
  FindingBuilder builder(job_state);
  std::vector<uint32_t> actors;
  auto add = [&](int32_t rank) {
    if (const uint32_t actor = network.actor(rank); actor != model::kNoRow) actors.push_back(actor);
  };
  bool gpu = network.is_gpu(cause);
  bool sending = cause.end->step->is_send;
  // A GPU that does not move is on one side; a link has two ends, and neither is known to be innocent.
  if (!gpu || sending) add(cause.source);
  if (!gpu || !sending) add(cause.target);
  Finding finding =
      builder.make(gpu ? FindingId::kStuckInNetworkGpu : FindingId::kStuckInNetwork, block, actors, waiting);
  finding.statement = gpu && !actors.empty()
                          ? "the GPU of " + builder.who(actors) + " holds up " + builder.operation(block)
                          : builder.operation(block) + " is stuck";
  finding.statement += ": " + network.text(cause);
  for (size_t i = 0; i < std::min(network.transfers().size(), kMostSteps); ++i)
    finding.evidence.push_back(network.text(network.transfers()[i]));
  if (network.transfers().size() > kMostSteps)
    finding.evidence.push_back("and " +
                               wording::count(network.transfers().size() - kMostSteps, "more transfer"));
  finding.advice =
      gpu ? builder.look_at_the_gpu()
          : "Check the link between the two: port state and error counters of both NICs, and the switch between them.";
  return finding;
}

// A step whose end was lost is much older than what its lane has done since; steps that overlap are not.
bool overtaken(const model::JobProcess& process, const model::OpenStep& step, int64_t patience_ns) {
  return std::any_of(process.net_pairs.begin(), process.net_pairs.end(), [&](const model::NetPair& pair) {
    return pair.member == step.member && pair.peer == step.peer && pair.channel == step.channel &&
           pair.is_send == step.is_send && pair.last_ns - step.since_ns > patience_ns;
  });
}

// When the rank called what it waits for in the block; 0 unknown.
std::optional<int64_t> waits_since(const Block& block, uint32_t actor) {
  const auto at = std::lower_bound(block.waiting.begin(), block.waiting.end(), actor);
  if (at == block.waiting.end() || *at != actor) return std::nullopt;
  return block.waiting_ns[static_cast<size_t>(at - block.waiting.begin())];
}

// It waits in something that it called before it came to the block of `root`, if it came there, or is to
// blame for something else itself.
bool is_held_elsewhere(const std::vector<Block>& blocks, const Culprits& culprits, const Root& root,
                       uint32_t actor) {
  for (const Root& other : culprits.roots) {
    if (&other != &root && std::binary_search(other.actors.begin(), other.actors.end(), actor)) return true;
  }
  const auto here = waits_since(blocks[root.block], actor);
  return std::any_of(blocks.begin(), blocks.end(), [&](const Block& block) {
    if (&block == &blocks[root.block] || block.kind == Block::Kind::kSilent || block.uncertain) return false;
    const auto there = waits_since(block, actor);
    return there && (!here || *here == 0 || (*there != 0 && *there < *here));
  });
}

}  // namespace

void drop_starved(const JobState& job_state, const std::vector<Block>& blocks, Culprits& culprits) {
  std::vector<bool> starved;
  for (const Root& root : culprits.roots) {
    starved.push_back(false);
    if (root.kind != Root::Kind::kStuck || !root.actors.empty()) continue;
    const Block& block = blocks[root.block];
    const std::vector<StuckStep> steps = stuck_steps(job_state, block.patience, block.comm);
    const NetworkVerdict network(job_state, block, steps);
    const Transfer* cause = network.first_cause();
    const uint32_t awaited = cause == nullptr ? model::kNoRow : network.awaited(*cause);
    starved.back() = awaited != model::kNoRow && is_held_elsewhere(blocks, culprits, root, awaited);
  }
  // Where each waits for another one, none stands out.
  if (culprits.cycles.empty() && std::find(starved.begin(), starved.end(), false) == starved.end()) return;
  size_t at = 0;
  std::erase_if(culprits.roots, [&](const Root&) { return starved[at++]; });
}

std::vector<StuckStep> stuck_steps(const JobState& job_state, const Patience& patience, uint32_t comm) {
  std::vector<StuckStep> stuck;
  const model::Job& job = job_state.job();
  for (uint32_t row : job.comms[comm].members) {
    // Whoever is gone, or records no more, has steps that stay open for ever.
    if (row == model::kNoRow || is_gone(job_state.actor_at(row).fate) ||
        job_state.is_off(job.members[row].process))
      continue;
    const model::JobProcess& process = job.processes[job.members[row].process];
    for (const model::OpenStep& step : process.open_steps) {
      int64_t waited = job_state.actor_at(row).end_ns - step.since_ns;
      if (step.member == row && waited > patience.suspicious_ns() &&
          !overtaken(process, step, patience.suspicious_ns()))
        stuck.push_back({row, &step, waited});
    }
  }
  return stuck;
}

Finding stuck_verdict(const JobState& job_state, const std::vector<Block>& blocks, const Root& root) {
  const Block& block = blocks[root.block];
  std::vector<StuckStep> steps = stuck_steps(job_state, block.patience, block.comm);
  NetworkVerdict network(job_state, block, steps);
  size_t waiting = root.waiting;
  const Transfer* cause = network.first_cause();
  // A rank whose kernel has not begun makes the transfers of the others wait.
  if (cause != nullptr && root.actors.empty()) {
    Root unknown = root;
    unknown.actors = network.torn_ends(*cause);
    if (!unknown.actors.empty()) return incomplete_verdict(job_state, blocks, {unknown});
    return network_finding(job_state, block, waiting, network, *cause);
  }
  FindingBuilder builder(job_state);
  // Those whose kernel has not begun hold the others; else those whose kernel runs, if some have finished.
  std::vector<uint32_t> blamed = root.actors;
  // Where all run it, nobody stands out, and nobody is blamed.
  size_t members = job_state.job().comms[block.comm].members.size();
  bool all_run = blamed.empty() && block.waiting.size() == members;
  if (blamed.empty() && !all_run) blamed = block.waiting;
  Finding finding = builder.make(FindingId::kStuckInGpu, block, blamed, waiting);
  if (!root.actors.empty()) {
    finding.statement = "the kernel of " + builder.operation(block) + " has not begun on " +
                        builder.who(root.actors) + "; " +
                        builder.wait(block, waiting, root.actors.size() > 1);
  } else {
    finding.statement = "all ranks have joined " + builder.operation(block) +
                        ", and its kernel has run for " + wording::duration(block.waited_ns) + " on " +
                        (all_run ? "all of them" : builder.who(blamed) + " only");
  }
  finding.advice = builder.look_at_the_gpus();
  const std::vector<model::JobProcess>& processes = job_state.job().processes;
  const bool are_steps_seen =
      std::any_of(processes.begin(), processes.end(), [](const model::JobProcess& process) {
        return !process.net_pairs.empty() || !process.open_steps.empty();
      });
  if (all_run && !are_steps_seen)
    finding.needed_evidence =
        "deep mode (lockstep trace -m deep), which shows the waiting transfer if the network is involved";
  return finding;
}

}  // namespace lockstep::analysis::hang
