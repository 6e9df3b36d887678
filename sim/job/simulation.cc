// SPDX-License-Identifier: Apache-2.0
#include "job/simulation.h"

#include <algorithm>

#include "job/host_calls.h"

namespace lockstep::sim::job {
namespace {

constexpr uint32_t kAhead = 64;  // units that the host may be ahead of its GPU
constexpr int64_t kSyncNs = 8'000, kLaunchNs = 5'000, kStreamNs = 2'000, kCopyNs = 3'000;
constexpr double kHostGapUs = 45, kHiccupChance = 5e-4;
constexpr double kComputeSigma = 0.02, kGapSigma = 0.3, kTransferSigma = 0.05;

uint64_t key(int number) { return static_cast<uint64_t>(number); }
int64_t whole(double ns) { return static_cast<int64_t>(ns); }

double total_compute_us(const Program& program) {
  double us = 0;
  for (const Unit& unit : program) us += unit.compute_us;
  return us;
}

}  // namespace

int64_t latest_start_ns(const Disturbance& disturbance) {
  double latest_ms = 0;
  for (const auto& [rank, ms] : disturbance.starts_ms) latest_ms = std::max(latest_ms, ms);
  return static_cast<int64_t>(latest_ms * 1e6);
}

Simulation::Simulation(const Layout& layout, const std::vector<Program>& programs,
                       const Disturbance& disturbance, SimulationSizes sizes, const Random& random)
    : layout_(layout),
      programs_(programs),
      disturbance_(disturbance),
      delays_(static_cast<size_t>(layout.ranks())),
      steps_(sizes.steps),
      network_(sizes.network),
      random_(random),
      links_(layout, disturbance),
      states_(static_cast<size_t>(layout.ranks())),
      meetings_(layout.groups().size()),
      pairs_(layout.groups().size()) {
  timeline_.ranks.resize(states_.size());
  for (const Delay& delay : disturbance.delays) delays_[static_cast<size_t>(delay.rank)].push_back(delay);
  for (size_t g = 0; g < pairs_.size(); ++g) {
    const Group& group = layout.groups()[g];
    if (group.dim == Dim::kPipeline || group.dim == Dim::kExpert)
      pairs_[g].resize(group.ranks.size() * group.ranks.size());
  }
}

std::vector<std::vector<int64_t>*> Simulation::columns(RankTimeline& t) const {
  std::vector<std::vector<int64_t>*> all = {&t.called, &t.entered, &t.ended, &t.met};
  if (network_) all.insert(all.end(), {&t.next_launched, &t.previous_entered});
  return all;
}

const Program& Simulation::program(int rank, int step) const {
  if (auto found = disturbance_.programs.find({rank, step}); found != disturbance_.programs.end())
    return found->second;
  return programs_[static_cast<size_t>(layout_.stage_of(rank))];
}

Timeline Simulation::run() {
  for (int rank = layout_.ranks() - 1; rank >= 0; --rank) {
    RankTimeline& t = timeline(rank);
    const size_t units = program(rank, 0).size() * static_cast<size_t>(steps_);
    for (auto* column : columns(t)) column->reserve(units);
    state(rank).host_free = kFirstStepNs + latest_start_ns(disturbance_) +
                            whole(random_.between(0, 5e6, Draw::kHostGap, key(rank)));
    begin_step(rank);
    wake(rank);
  }
  while (!awake_.empty()) {
    const int rank = awake_.back();
    awake_.pop_back();
    state(rank).awake = false;
    while (advance_streams(rank) || advance_compute(rank) || advance_host(rank)) {
    }
  }
  if (network_) notify_unfinished();
  timeline_.finished = true;
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    const RankState& s = state(rank);
    timeline_.finished = timeline_.finished && s.step == steps_;
    timeline_.last = std::max({timeline_.last, s.host_free, s.latest_end, timeline(rank).left});
  }
  return std::move(timeline_);
}

void Simulation::wake(int rank) {
  if (state(rank).awake) return;
  state(rank).awake = true;
  awake_.push_back(rank);
}

void Simulation::begin_step(int rank) {
  RankState& s = state(rank);
  RankTimeline& t = timeline(rank);
  ++s.step;
  s.host_unit = s.gpu_unit = s.ended = 0;
  s.blocked_on = -1;
  if (s.step == steps_) {
    t.left = s.host_free + 1'000'000;
    s.stopped = true;
    return;
  }
  const Program& units = program(rank, s.step);
  s.flights.assign(units.size(), {});
  s.host_delay_us = 0;
  double gpu_us = 0;
  for (const Delay& delay : delays_[static_cast<size_t>(rank)]) {
    if (s.step < delay.from_step || s.step >= delay.until_step) continue;
    s.host_delay_us += delay.host_us;
    gpu_us += delay.gpu_us;
  }
  s.compute_factor = 1 + random_.between(-1e-3, 1e-3, Draw::kCompute, key(rank)) +
                     gpu_us / std::max(1.0, total_compute_us(units));
  t.step_begin.push_back(static_cast<uint32_t>(t.called.size()));
  t.step_began.push_back(s.host_free);
}

bool Simulation::end_step(int rank) {
  RankState& s = state(rank);
  if (s.ended < s.flights.size()) return false;
  s.host_free = std::max(s.host_free, s.latest_end) + kSyncNs;
  begin_step(rank);
  return true;
}

// Whether the rank calls nothing more; or false with the host's time moved to when it may.
bool Simulation::stops(int rank, const Stop& stop) {
  RankState& s = state(rank);
  const auto unit = static_cast<uint32_t>(stop.at.unit);
  const bool inside = stop.manner == Stop::Manner::kKilledInside;
  if (s.step != stop.at.step || s.host_unit != unit + inside) return false;
  s.stopped = true;
  if (stop.manner == Stop::Manner::kFinished || stop.manner == Stop::Manner::kKilled ||
      stop.manner == Stop::Manner::kStopped)
    timeline(rank).left = std::max(s.host_free, s.latest_end) + 1'000'000;
  if (inside) timeline(rank).left = s.host_free + 20'000'000;
  return true;
}

bool Simulation::advance_host(int rank) {
  RankState& s = state(rank);
  if (s.stopped) return false;
  if (auto found = disturbance_.stops.find(rank); found != disturbance_.stops.end()) {
    const Stop& stop = found->second;
    const bool waits = stop.manner != Stop::Manner::kElsewhere && stop.manner != Stop::Manner::kKilledInside;
    const bool here = s.step == stop.at.step && s.host_unit == static_cast<uint32_t>(stop.at.unit);
    if (here && waits && s.ended < s.host_unit) return false;
    if (stops(rank, stop)) return false;
  }
  if (s.host_unit == s.flights.size()) return end_step(rank);
  int64_t not_before = s.host_free;
  if (s.host_unit >= kAhead) {
    const Flight& behind = s.flights[s.host_unit - kAhead];
    if (behind.entered == kNever) return false;
    not_before = std::max(not_before, behind.entered);
  }
  if (!disturbance_.synchronous.empty() && s.host_unit > 0 &&
      disturbance_.synchronous.contains({rank, {s.step, static_cast<int>(s.host_unit) - 1}})) {
    const Flight& last = s.flights[s.host_unit - 1];
    if (last.ended == kNever) return false;
    not_before = std::max(not_before, last.ended + kSyncNs);
  }
  call(rank, not_before);
  return true;
}

void Simulation::call(int rank, int64_t not_before) {
  RankState& s = state(rank);
  RankTimeline& t = timeline(rank);
  const Unit& unit = program(rank, s.step)[s.host_unit];
  const uint64_t n = t.called.size();
  const double usual_us = kHostGapUs * random_.lognormal(kGapSigma, Draw::kHostGap, key(rank), n);
  double gap_us = usual_us;
  if (random_.uniform(Draw::kHiccup, key(rank), n) < kHiccupChance)
    gap_us += random_.between(300, 1500, Draw::kHiccup, key(rank), n, 1);
  if (s.host_unit == 0) gap_us += s.host_delay_us;
  const int64_t called = not_before + whole(gap_us * 1000);
  const HostCalls calls = HostCalls::of(rank, n, unit.tasks.size(), random_);
  Flight& flight = s.flights[s.host_unit];
  flight.launched = called + calls.launch;
  flight.compute_from = called - whole(usual_us * 600);
  flight.open_tasks = unit.tasks.size();
  s.host_free = called + calls.done;
  for (auto* column : columns(t)) column->push_back(kNever);
  t.called.back() = called;
  if (network_) announce(rank, unit, flight.launched);
  ++s.host_unit;
}

bool Simulation::advance_compute(int rank) {
  RankState& s = state(rank);
  if (s.gpu_unit == s.host_unit) return false;
  const Unit& unit = program(rank, s.step)[s.gpu_unit];
  if (unit.joins && s.ended < s.gpu_unit) return false;
  if (s.blocked_on >= 0) {
    const Flight& blocking = s.flights[static_cast<size_t>(s.blocked_on)];
    if (blocking.ended == kNever) return false;
    s.compute_free = std::max(s.compute_free, blocking.ended);
  }
  if (auto stuck = disturbance_.stuck_compute.find(rank);
      stuck != disturbance_.stuck_compute.end() &&
      stuck->second == Position{s.step, static_cast<int>(s.gpu_unit)})
    return false;
  if (unit.joins) s.compute_free = std::max(s.compute_free, s.latest_end);
  const double compute_ns =
      unit.compute_us * 1000 * s.compute_factor *
      random_.lognormal(kComputeSigma, Draw::kCompute, key(rank), row(rank, s.gpu_unit));
  Flight& flight = s.flights[s.gpu_unit];
  s.compute_free = std::max(s.compute_free, flight.compute_from) + whole(compute_ns);
  const int64_t ready = std::max(s.compute_free, flight.launched + kLaunchNs);
  s.streams[static_cast<size_t>(unit.dim)].waiting.push_back({rank, s.gpu_unit, ready});
  s.blocked_on = unit.blocks ? static_cast<int>(s.gpu_unit) : -1;
  ++s.gpu_unit;
  return true;
}

bool Simulation::advance_streams(int rank) {
  bool any = false;
  for (Stream& stream : state(rank).streams) {
    if (stream.busy || stream.waiting.empty()) continue;
    const Member next = stream.waiting.front();
    stream.waiting.pop_front();
    stream.busy = any = true;
    enter(rank, next.unit, std::max(next.entered, stream.free + kStreamNs));
  }
  return any;
}

void Simulation::enter(int rank, uint32_t unit, int64_t when) {
  RankState& s = state(rank);
  s.flights[unit].entered = timeline(rank).entered[row(rank, unit)] = when;
  const Unit& what = program(rank, s.step)[unit];
  const int group = layout_.group_of(rank, what.dim);
  const Member member{rank, unit, when};
  if (what.tasks.front().is_p2p()) {
    exchange(group, member, what.tasks);
  } else {
    const uint64_t index = s.streams[static_cast<size_t>(what.dim)].collectives++;
    meet(group, member, what.tasks.front(), index);
  }
}

Simulation::Meeting& Simulation::meeting(int group, uint64_t index) {
  Meetings& meetings = meetings_[static_cast<size_t>(group)];
  while (meetings.first + meetings.open.size() <= index) meetings.open.emplace_back();
  return meetings.open[index - meetings.first];
}

Simulation::Pair& Simulation::pair(int group, int from, int to) {
  const auto size = static_cast<size_t>(layout_.group(group).size());
  return pairs_[static_cast<size_t>(group)][static_cast<size_t>(from) * size + static_cast<size_t>(to)];
}

// Receives are posted to the network when they are launched, whatever the GPU does.
void Simulation::announce(int rank, const Unit& unit, int64_t launched) {
  const int group = layout_.group_of(rank, unit.dim), me = layout_.rank_in(rank, unit.dim);
  const Group& g = layout_.group(group);
  if (g.nodes < 2) return;
  RankState& s = state(rank);
  if (unit.tasks.front().is_p2p()) {
    for (const Task& task : unit.tasks) {
      if (task.func == Func::kRecv)
        pair(group, task.peer, me).receiving.push_back({rank, s.host_unit, launched, kNever});
    }
    return;
  }
  Meeting& meeting = this->meeting(group, s.streams[static_cast<size_t>(unit.dim)].announced++);
  meeting.announced.resize(g.ranks.size());
  meeting.announced[static_cast<size_t>(me)] = {rank, s.host_unit, launched, kNever};
}

void Simulation::meet(int group, const Member& member, const Task& task, uint64_t index) {
  Meetings& meetings = meetings_[static_cast<size_t>(group)];
  Meeting& meeting = this->meeting(group, index);
  ++meeting.arrived;
  meeting.last = std::max(meeting.last, member.entered);
  meeting.waiting.push_back(member);
  if (!meeting.announced.empty())
    meeting.announced[static_cast<size_t>(layout_.rank_in(member.rank, layout_.group(group).dim))].entered =
        member.entered;
  const Group& g = layout_.group(group);
  if (g.ranks[static_cast<size_t>(task.root)] == member.rank) meeting.root_entered = member.entered;
  const bool all = meeting.arrived == g.size();
  if (!disturbance_.halted.empty() && disturbance_.halted.contains({group, index})) return;
  const bool eager = task.func == Func::kBroadcast && task.bytes() <= kEagerBytes;
  if (all || (eager && meeting.root_entered != kNever)) complete(group, index, task, meeting);
  while (!meetings.open.empty() && meetings.open.front().arrived == g.size()) {
    meetings.open.pop_front();
    ++meetings.first;
  }
}

double Simulation::slowness(Func func, int step) const {
  double factor = 1;
  for (const SlowFunc& slow : disturbance_.slow_funcs) {
    if (slow.func == func && step >= slow.from_step) factor *= slow.factor;
  }
  return factor;
}

// Lets everyone who waits go.
void Simulation::complete(int group, uint64_t index, const Task& task, Meeting& meeting) {
  const bool eager = task.func == Func::kBroadcast && task.bytes() <= kEagerBytes;
  const double took = links_.collective_ns(group, task) *
                      slowness(task.func, state(meeting.waiting.front().rank).step) *
                      random_.lognormal(kTransferSigma, Draw::kTransfer, key(group), index);
  notify_neighbours(group, meeting);
  for (const Member& member : meeting.waiting) {
    if (!meeting.announced.empty())
      meeting.announced[static_cast<size_t>(layout_.rank_in(member.rank, layout_.group(group).dim))].rank =
          -1;
    const int64_t met = eager ? std::max(member.entered, meeting.root_entered) : meeting.last;
    const double skew = random_.between(0, 1'500, Draw::kEndSkew, key(member.rank), key(group), index);
    task_done(member, met, met + whole(took + skew));
  }
  meeting.waiting.clear();
}

// How far those next to each member in the ring over the network were.
void Simulation::notify_neighbours(int group, const Meeting& meeting) {
  const Group& g = layout_.group(group);
  for (size_t me = 0; me < meeting.announced.size(); ++me) {
    const Announced& own = meeting.announced[me];
    if (own.rank < 0) continue;
    const int next = layout_.network_peer(g, static_cast<int>(me), true);
    const int previous = layout_.network_peer(g, static_cast<int>(me), false);
    const size_t at = row(own.rank, own.unit);
    RankTimeline& t = timeline(own.rank);
    if (next >= 0) t.next_launched[at] = meeting.announced[static_cast<size_t>(next)].launched;
    if (previous >= 0) t.previous_entered[at] = meeting.announced[static_cast<size_t>(previous)].entered;
  }
}

void Simulation::notify_senders(const Pair& pair) {
  for (const Side& send : pair.sends) {
    if (send.number >= pair.receiving.size()) continue;
    const Announced& receive = pair.receiving[send.number];
    timeline(receive.rank).previous_entered[row(receive.rank, receive.unit)] = send.member.entered;
    if (!send.done)
      timeline(send.member.rank).next_launched[row(send.member.rank, send.member.unit)] = receive.launched;
  }
}

void Simulation::notify_unfinished() {
  for (size_t g = 0; g < meetings_.size(); ++g) {
    for (const Meeting& meeting : meetings_[g].open) notify_neighbours(static_cast<int>(g), meeting);
    for (const Pair& pair : pairs_[g]) notify_senders(pair);
  }
}

void Simulation::exchange(int group, const Member& member, const std::vector<Task>& tasks) {
  const Group& g = layout_.group(group);
  const int me = layout_.rank_in(member.rank, g.dim);
  const size_t together = tasks.size() > 2 ? tasks.size() / 2 : 1;
  for (const Task& task : tasks) {
    if (task.peer == me) {
      task_done(member, member.entered, member.entered + kCopyNs);
      continue;
    }
    const bool sends = task.func == Func::kSend;
    const int from = sends ? me : task.peer, to = sends ? task.peer : me;
    Pair& pair = this->pair(group, from, to);
    const uint64_t number = sends ? pair.sent++ : pair.received++;
    std::deque<Side>& others = sends ? pair.receives : pair.sends;
    if (!others.empty()) {
      const Side other = others.front();
      others.pop_front();
      const Side own{member, false, number};
      transfer(group, from, to, task.bytes(), together, sends ? own : other, sends ? other : own);
    } else if (sends && task.bytes() <= kEagerBytes) {
      task_done(member, member.entered, member.entered + kCopyNs);
      pair.sends.push_back({member, true, number});
    } else {
      (sends ? pair.sends : pair.receives).push_back({member, false, number});
    }
  }
}

void Simulation::transfer(int group, int from, int to, uint64_t bytes, size_t together, const Side& send,
                          const Side& receive) {
  const int64_t met = std::max(send.member.entered, receive.member.entered);
  const double took =
      links_.transfer_ns(group, from, to, bytes, together) *
      random_.lognormal(kTransferSigma, Draw::kTransfer, key(group) << 32 | key(from) << 16 | key(to),
                        key(state(receive.member.rank).step), receive.member.unit);
  if (network_) {
    const size_t at = row(receive.member.rank, receive.member.unit);
    timeline(receive.member.rank).previous_entered[at] = send.member.entered;
    if (!send.done)
      timeline(send.member.rank).next_launched[row(send.member.rank, send.member.unit)] =
          state(receive.member.rank).flights[receive.member.unit].launched;
  }
  if (!send.done) task_done(send.member, met, met + whole(took));
  task_done(receive.member, met, met + whole(took) + 1'000);
}

void Simulation::task_done(const Member& member, int64_t met, int64_t ended) {
  RankState& s = state(member.rank);
  Flight& flight = s.flights[member.unit];
  flight.met = std::max(flight.met, met);
  flight.latest = std::max(flight.latest, ended);
  if (--flight.open_tasks > 0) return;
  RankTimeline& t = timeline(member.rank);
  const size_t at = row(member.rank, member.unit);
  flight.ended = t.ended[at] = flight.latest;
  t.met[at] = flight.met;
  s.latest_end = std::max(s.latest_end, flight.ended);
  ++s.ended;
  Stream& stream = s.streams[static_cast<size_t>(program(member.rank, s.step)[member.unit].dim)];
  stream.busy = false;
  stream.free = flight.ended;
  wake(member.rank);
}

}  // namespace lockstep::sim::job
