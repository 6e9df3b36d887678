// SPDX-License-Identifier: Apache-2.0
// Faults after which a job hangs.
#include <algorithm>
#include <set>

#include "job/faults/plans.h"

namespace lockstep::sim::job {
namespace {

using Manner = Stop::Manner;

// A rank that is not there is missed at once: not in a small broadcast, which its root does not wait for.
bool is_missed(const Unit& unit, const Group&) { return unit.tasks.front().func != Func::kBroadcast; }

Target choose_target(const FaultInput& input, Chooser& choose) {
  const int rank = choose.rank();
  const int unit = choose.one_of(collectives(input, rank, is_missed));
  return target_at(input, rank, {choose.step(), unit});
}

// The first rank from a random one on that has a unit that passes the test, and one of those units.
template <class Test>
Result<Target> choose_where(const FaultInput& input, Chooser& choose, const char* needs, Test&& test) {
  const int first = choose.rank(), ranks = input.layout.ranks();
  for (int i = 0; i < ranks; ++i) {
    const int rank = (first + i) % ranks;
    const std::vector<int> units = collectives(input, rank, test);
    if (!units.empty()) return target_at(input, rank, {choose.step(), choose.one_of(units)});
  }
  return Error{ErrorCode::kUsage, std::string("this fault needs ") + needs, ""};
}

FaultPlan hang(const char* name, std::vector<int> ranks) {
  FaultPlan plan;
  plan.truth.classes = {name};
  plan.truth.ranks = std::move(ranks);
  plan.truth.hangs = true;
  return plan;
}

std::vector<int> others_of(const Group& group, int rank) {
  std::vector<int> others;
  for (int member : group.ranks) {
    if (member != rank) others.push_back(member);
  }
  return others;
}

// Hosts run ahead: everybody has called everything of the step, and no GPU time says where the GPUs are.
void mark_unseen(Truth* truth) {
  truth->classes = {"evidence-missing", "stuck-in-gpu", "stuck-in-network"};
  truth->ranks_known = false;
  truth->op_index = -1;
  truth->note = "no GPU times";
}

// The next collective of the same communicator that differs, in the same step; -1 none.
int next_different(const Program& program, int unit) {
  const Unit& mine = program[static_cast<size_t>(unit)];
  for (size_t u = static_cast<size_t>(unit) + 1; u < program.size(); ++u) {
    if (program[u].dim == mine.dim && program[u].tasks != mine.tasks && !program[u].tasks.front().is_p2p())
      return static_cast<int>(u);
  }
  return -1;
}

}  // namespace

Result<FaultPlan> plan_never_joined(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  const Target target = choose_target(input, choose);
  FaultPlan plan = hang("never-joined", {target.rank});
  Manner manner = Manner::kElsewhere;
  if (variant == "finished") manner = Manner::kFinished;
  if (variant == "stopped") {
    manner = Manner::kStopped;
    plan.truth.classes.emplace_back("rank-dead");  // files alone cannot tell
  }
  plan.disturbance.stops[target.rank] = {target.at, manner};
  name_op(target, &plan.truth);
  return plan;
}

Result<FaultPlan> plan_joined_other_op(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  auto fits = [&](const Unit& unit, const Group&) {
    const Task& task = unit.tasks.front();
    return variant == "root" ? task.func == Func::kBroadcast : task.func != Func::kBroadcast;
  };
  LOCKSTEP_ASSIGN(Target target, choose_where(input, choose, "such an operation", fits));
  Program program = program_of(input, target.rank);
  if (variant == "order") {
    const int first = static_cast<int>(choose.below(program.size()));
    int unit = -1, other = -1;
    for (size_t i = 0; i < program.size() && other < 0; ++i) {
      unit = static_cast<int>((static_cast<size_t>(first) + i) % program.size());
      if (!program[static_cast<size_t>(unit)].tasks.front().is_p2p()) other = next_different(program, unit);
    }
    if (other < 0) return wrong_input("no two operations of one communicator differ");
    target = target_at(input, target.rank, {target.at.step, unit});
    std::swap(program[static_cast<size_t>(unit)].tasks, program[static_cast<size_t>(other)].tasks);
  } else {
    Task& task = program[static_cast<size_t>(target.at.unit)].tasks.front();
    if (variant == "count") task.count = task.count > 16 ? task.count - 16 : task.count + 16;
    if (variant == "dtype")
      task.type = task.type == DataType::kFloat32 ? DataType::kBfloat16 : DataType::kFloat32;
    if (variant == "func") task.func = task.func == Func::kAllReduce ? Func::kAllGather : Func::kAllReduce;
    if (variant == "root") task.root = input.layout.group(target.group).size() - 1;
  }
  const Group& group = input.layout.group(target.group);
  FaultPlan plan = hang("joined-other-op", {target.rank});
  if (group.size() == 2) {  // each differs from the other
    plan.truth.ranks = group.ranks;
    plan.truth.any_of = true;
  }
  plan.disturbance.programs[{target.rank, target.at.step}] = std::move(program);
  plan.disturbance.halted[{target.group, target.index}] = {};
  name_op(target, &plan.truth);
  return plan;
}

Result<FaultPlan> plan_cross_comm_deadlock(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  // A collective of a smaller group right before one of the world, which is the step's last.
  const int rank = choose.rank();
  const Program& usual = program_of(input, rank);
  const int step = choose.step();
  int unit = static_cast<int>(usual.size()) - 2;
  while (unit >= 0 && (usual[static_cast<size_t>(unit)].tasks.front().is_p2p() ||
                       usual[static_cast<size_t>(unit)].dim == Dim::kWorld))
    --unit;
  if (unit < 0) return wrong_input("this fault needs collectives of a group beside the world's");
  const Target target = target_at(input, rank, {step, unit});
  const Group& group = input.layout.group(target.group);
  const int world = static_cast<int>(usual.size()) - 1;
  FaultPlan plan = hang("cross-comm-deadlock", {rank});
  plan.truth.also = others_of(group, rank);
  plan.truth.any_of = group.size() == 2;
  if (plan.truth.any_of) plan.truth.ranks = group.ranks;
  // Everybody takes the two one after the other; the victim the other way round.
  for (int member : group.ranks) {
    Program program = program_of(input, member);
    Unit& small = program[static_cast<size_t>(unit)];
    Unit& large = program[static_cast<size_t>(world)];
    small.blocks = large.blocks = true;
    small.joins = true;
    if (member == rank) {
      std::swap(small, large);
      small.joins = true;
    }
    if (variant == "blocking") {
      plan.disturbance.synchronous.insert({member, {step, unit}});
      plan.disturbance.synchronous.insert({member, {step, world}});
    }
    plan.disturbance.programs[{member, step}] = std::move(program);
  }
  name_op(target, &plan.truth);
  plan.truth.op_index = -1;  // either of the two
  return plan;
}

Result<FaultPlan> plan_stuck_in_gpu(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  const Target target = choose_target(input, choose);
  FaultPlan plan = hang("stuck-in-gpu", {target.rank});
  if (variant == "compute") {
    plan.disturbance.stuck_compute[target.rank] = target.at;
  } else {
    plan.disturbance.halted[{target.group, target.index}] = {};
    plan.truth.ranks.clear();
    plan.truth.also = input.layout.group(target.group).ranks;
  }
  name_op(target, &plan.truth);
  if (!input.deep) mark_unseen(&plan.truth);
  return plan;
}

Result<FaultPlan> plan_stuck_in_network(std::string_view variant, const FaultInput& input) {
  if (!input.deep) return wrong_input("stuck-in-network shows in deep mode only: --mode deep");
  Chooser choose(input);
  auto crosses = [](const Unit& unit, const Group& group) {
    return group.nodes > 1 && unit.tasks.front().message_bytes(group.size()) > (1 << 20);
  };
  LOCKSTEP_ASSIGN(const Target target, choose_where(input, choose, "collectives between hosts", crosses));
  const Group& group = input.layout.group(target.group);
  std::vector<Edge> edges;
  for (int member = 0; member < group.size(); ++member) {
    const int peer = input.layout.network_peer(group, member, true);
    if (peer >= 0) edges.push_back({member, peer});
  }
  const Edge edge = choose.one_of(edges);
  const int from = group.ranks[static_cast<size_t>(edge.from)],
            to = group.ranks[static_cast<size_t>(edge.to)];
  FaultPlan plan = hang("stuck-in-network", {std::min(from, to), std::max(from, to)});
  Halt how = Halt::kSendWait;
  if (variant == "recv") how = Halt::kRecvWait;
  if (variant == "peer") how = Halt::kPeerWait;
  if (variant == "gpu") {
    how = Halt::kGpuWait;
    plan.truth.classes.emplace_back("stuck-in-gpu");
    plan.truth.ranks = {from};
    plan.truth.also = {to};
  }
  plan.disturbance.halted[{target.group, target.index}] = {how, edge.from, edge.to};
  name_op(target, &plan.truth);
  return plan;
}

Result<FaultPlan> plan_rank_dead(std::string_view variant, const FaultInput& input) {
  Chooser choose(input);
  const Target target = choose_target(input, choose);
  FaultPlan plan = hang("rank-dead", {target.rank});
  const bool inside = variant == "inside";
  plan.disturbance.stops[target.rank] = {target.at, inside ? Manner::kKilledInside : Manner::kKilled};
  if (inside) plan.disturbance.halted[{target.group, target.index}] = {};
  name_op(target, &plan.truth);
  if (inside && !input.deep) plan.truth.op_index = -1;  // only GPU times show that it did not end
  return plan;
}

Result<FaultPlan> plan_rank_unreachable(std::string_view, const FaultInput& input) {
  if (input.layout.hosts() < 2) return wrong_input("rank-unreachable needs two hosts");
  Chooser choose(input);
  const int host = static_cast<int>(choose.below(static_cast<uint64_t>(input.layout.hosts())));
  const std::vector<int> ranks = input.layout.ranks_of_host(host);
  FaultPlan plan = hang("rank-unreachable", ranks);
  const int step = choose.step();
  for (int rank : ranks) {
    plan.disturbance.stops[rank] = {{step, 0}, Manner::kKilled};
    plan.disturbance.lost_files.insert(rank);
  }
  plan.truth.since_step = step;
  return plan;
}

Result<FaultPlan> plan_init_stuck(std::string_view, const FaultInput& input) {
  Chooser choose(input);
  const int step = choose.step();
  const Group& world = input.layout.groups().front();
  NewGroup late;
  late.group = world;
  late.group.comm_id = input.random.bits(Draw::kIdentity, 6);
  late.group.name = "checkpoint:" + std::to_string(input.layout.groups().size());
  const uint64_t absent = 1 + choose.below(static_cast<uint64_t>(std::max(1, std::min(3, world.size() / 4))));
  while (late.absent.size() < absent) late.absent.insert(choose.rank());
  FaultPlan plan = hang("init-stuck", {late.absent.begin(), late.absent.end()});
  for (int rank : world.ranks) plan.disturbance.stops[rank] = {{step, 0}, Manner::kInInit};
  plan.disturbance.new_group = std::move(late);
  plan.truth.since_step = step;
  plan.truth.comm_is_new = true;
  return plan;
}

Result<FaultPlan> plan_too_many_failed(std::string_view, const FaultInput& input) {
  Chooser choose(input);
  const int ranks = input.layout.ranks();
  if (ranks < 4) return wrong_input("too-many-failed needs four ranks");
  const Target first = choose_target(input, choose);
  std::set<int> dead = {first.rank};
  while (static_cast<int>(dead.size()) < ranks * 3 / 4) dead.insert(choose.rank());
  FaultPlan plan = hang("too-many-failed", {dead.begin(), dead.end()});
  plan.disturbance.stops[first.rank] = {first.at, Manner::kKilled};
  for (int rank : dead) {
    if (rank != first.rank) plan.disturbance.dies_after_ms[rank] = choose.between(5, 300);
  }
  plan.truth.since_step = first.at.step;
  return plan;
}

}  // namespace lockstep::sim::job
