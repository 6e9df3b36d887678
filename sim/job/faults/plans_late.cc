// SPDX-License-Identifier: Apache-2.0
// Faults of jobs that go on: lateness, slow links, and evidence that is not there.
#include <algorithm>

#include "job/faults/plans.h"

namespace lockstep::sim::job {
namespace {

constexpr double kSlowestLink = 12, kFastestSlowLink = 5;
// Of a step's compute. Less is near what a user would not care about, and within what a long step varies by.
constexpr double kLeastLateShare = 0.1;

// Edges of rings between hosts that steps use, as global ranks.
std::vector<Edge> network_edges(const FaultInput& input) {
  std::vector<Edge> edges;
  for (const Group& group : input.layout.groups()) {
    if (group.dim != Dim::kData && !(group.dim == Dim::kTensor && group.nodes > 1)) continue;
    for (int member = 0; member < group.size(); ++member) {
      const int peer = input.layout.network_peer(group, member, true);
      if (peer < 0) continue;
      edges.push_back({group.ranks[static_cast<size_t>(member)], group.ranks[static_cast<size_t>(peer)]});
    }
  }
  return edges;
}

// A fault of the network: it shows in proxy steps, against links that are well.
Result<std::vector<Edge>> comparable_edges(const FaultInput& input) {
  if (!input.deep) return Error{ErrorCode::kUsage, "this fault shows in deep mode only: --mode deep", ""};
  std::vector<Edge> edges = network_edges(input);
  if (input.layout.hosts() < 3 || edges.size() < 3)
    return Error{ErrorCode::kUsage, "this fault needs data groups over three hosts", ""};
  return edges;
}

// One rank is late from a step on, by the part of the delay that is named.
FaultPlan plan_late(const char* late_class, double Delay::*part, const FaultInput& input) {
  Chooser choose(input);
  FaultPlan plan;
  Delay delay;
  delay.rank = first_stage_rank(input, choose);
  delay.from_step = choose.step();
  const double ms = std::max(choose.between(3, 12), kLeastLateShare * step_compute_us(input) * 1e-3);
  delay.*part = ms * 1000;
  plan.disturbance.delays.push_back(delay);
  plan.truth.classes = {late_class};
  plan.truth.ranks = {delay.rank};
  plan.truth.since_step = delay.from_step;
  plan.truth.effect_ms = ms;
  return plan;
}

}  // namespace

int first_stage_rank(const FaultInput& input, Chooser& choose) {
  const LayoutSizes& s = input.layout.sizes();
  return static_cast<int>(choose.below(static_cast<uint64_t>(s.tp) * static_cast<uint64_t>(s.dp)));
}

Result<FaultPlan> plan_host_late(std::string_view, const FaultInput& input) {
  return plan_late("host-late", &Delay::host_us, input);
}

Result<FaultPlan> plan_gpu_late(std::string_view, const FaultInput& input) {
  if (!input.deep) return wrong_input("gpu-late shows in deep mode only: --mode deep");
  return plan_late("gpu-late", &Delay::gpu_us, input);
}

Result<FaultPlan> plan_slow_link(std::string_view, const FaultInput& input) {
  LOCKSTEP_ASSIGN(const std::vector<Edge> edges, comparable_edges(input));
  Chooser choose(input);
  FaultPlan plan;
  const Edge edge = choose.one_of(edges);
  plan.disturbance.slow_edges = {{edge.from, edge.to, choose.between(kFastestSlowLink, kSlowestLink)}};
  plan.truth.classes = {"slow-link"};
  plan.truth.ranks = {std::min(edge.from, edge.to), std::max(edge.from, edge.to)};
  plan.truth.since_step = 0;
  return plan;
}

Result<FaultPlan> plan_slow_nic(std::string_view, const FaultInput& input) {
  LOCKSTEP_ASSIGN(const std::vector<Edge> edges, comparable_edges(input));
  Chooser choose(input);
  FaultPlan plan;
  const int rank = choose.one_of(edges).from;
  const double factor = choose.between(kFastestSlowLink, kSlowestLink);
  plan.disturbance.slow_edges = {{rank, -1, factor}, {-1, rank, factor}};
  plan.truth.classes = {"slow-nic"};
  plan.truth.ranks = {rank};
  plan.truth.since_step = 0;
  return plan;
}

Result<FaultPlan> plan_fallback(std::string_view variant, const FaultInput& input) {
  LOCKSTEP_TRY(comparable_edges(input));
  Chooser choose(input);
  FaultPlan plan;
  const int host = static_cast<int>(choose.below(static_cast<uint64_t>(input.layout.hosts())));
  plan.disturbance.socket_hosts = {host};
  plan.truth.classes = {"fallback"};
  plan.truth.ranks = input.layout.ranks_of_host(host);
  plan.truth.since_step = 0;
  if (variant == "seen") {
    plan.disturbance.net_events = true;
    return plan;
  }
  // Which transport is used is not in a process file; that the host's links are slow is.
  plan.truth.classes = {"evidence-missing", "slow-nic", "fallback"};
  plan.truth.ranks_known = false;
  plan.truth.note = "the files do not name the transport";
  return plan;
}

Result<FaultPlan> plan_imbalance(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  FaultPlan plan;
  const double ms = step_compute_us(input) * 1e-3;
  plan.truth.classes = {"imbalance"};
  if (variant == "once") {
    const int step = choose.step();
    const double lost_ms = std::max(100.0, ms * choose.between(5, 10));
    const int rank = first_stage_rank(input, choose);
    plan.disturbance.delays.push_back(
        {.rank = rank, .from_step = step, .until_step = step + 1, .host_us = lost_ms * 1000});
    plan.truth.also = {rank};
    plan.truth.since_step = step;
    plan.truth.effect_ms = lost_ms;
    return plan;
  }
  const double lost_ms = std::max(3.0, ms * choose.between(0.2, 0.4));
  // All take turns: of few that do, each would be late periodically, or by a tail.
  int last = -1;
  for (int step = 0; step < input.steps; ++step) {
    int rank = choose.rank();
    while (rank == last) rank = choose.rank();
    last = rank;
    plan.disturbance.delays.push_back(
        {.rank = rank, .from_step = step, .until_step = step + 1, .host_us = lost_ms * 1000});
  }
  for (int rank = 0; rank < input.layout.ranks(); ++rank) plan.truth.also.push_back(rank);
  plan.truth.since_step = 0;
  plan.truth.effect_ms = lost_ms;
  return plan;
}

Result<FaultPlan> plan_evidence_missing(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  FaultPlan plan;
  if (variant == "ring") {
    // Two chunks hold some hundred operations: what came before, and so the count from the beginning, is
    // gone.
    LOCKSTEP_ASSIGN(plan, plan_never_joined("elsewhere", input));
    for (int rank = 0; rank < input.layout.ranks(); ++rank) plan.disturbance.ring_chunks[rank] = 2;
    plan.truth.classes = {"never-joined", "evidence-missing"};
    plan.truth.op_index = -1;
    return plan;
  }
  plan.truth.classes = {"evidence-missing"};
  if (variant == "file") {
    const int rank = choose.rank();
    plan.disturbance.lost_files = {rank};
    plan.truth.ranks = {rank};
    return plan;
  }
  const int ranks = input.layout.ranks();
  const int first = choose.below(2) == 0 ? 0 : ranks - ranks / 2;
  for (int rank = first; rank < first + ranks / 2; ++rank) {
    plan.disturbance.lost_files.insert(rank);
    plan.truth.ranks.push_back(rank);
  }
  return plan;
}

}  // namespace lockstep::sim::job
