// SPDX-License-Identifier: Apache-2.0
// Plays a job in true time. Per rank a host that calls units, running ahead of its GPU up to a bound and
// waiting for it once a step; a GPU with a compute stream and a stream per communicator. No operation ends
// before everyone that it waits for has entered:
//   all-reduce, all-gather, reduce-scatter   every member
//   broadcast                                the root; a large one at the root, every member
//   receive                                  its sender; a large send waits for its receiver, a small one for
//                                            nobody
// What cannot go on stays where it is, so that a fault's consequences are those of the rules above and
// nothing else. One thread. The same timeline whatever the order in which ranks are advanced.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "job/faults/disturbance.h"
#include "job/layout.h"
#include "job/links.h"
#include "job/random.h"
#include "job/step_program.h"
#include "job/timeline.h"

namespace lockstep::sim::job {

// Up to so many bytes are sent into the receiver's buffers without waiting for it.
inline constexpr uint64_t kEagerBytes = 64 << 10;
inline constexpr int64_t kFirstStepNs = 2'000'000'000;  // communicators are created before

// How much later the last process starts than the first.
int64_t latest_start_ns(const Disturbance& disturbance);

struct SimulationSizes {
  int steps = 10;
  bool network = false;  // also the timeline's columns about neighbours
};

class Simulation {
 public:
  Simulation(const Layout& layout, const std::vector<Program>& programs, const Disturbance& disturbance,
             SimulationSizes sizes, const Random& random);
  Timeline run();

 private:
  struct Member {
    int rank = 0;
    uint32_t unit = 0;  // of the rank's step
    int64_t entered = 0;
  };
  struct Announced {  // to the network, when it was launched
    int rank = -1;
    uint32_t unit = 0;
    int64_t launched = kNever, entered = kNever;
  };
  struct Meeting {                     // one collective; open until every member has been through
    std::vector<Announced> announced;  // by member, where the network is wanted
    std::vector<Member> waiting;
    int64_t last = 0;
    int64_t root_entered = kNever;
    int arrived = 0;
  };
  struct Meetings {  // of a group
    std::deque<Meeting> open;
    uint64_t first = 0;  // index of open.front()
  };
  struct Side {  // of a transfer whose other side has not come
    Member member;
    bool done = false;    // a small send that did not wait
    uint64_t number = 0;  // of the sends or receives between the two
  };
  struct Pair {  // of members; at most one of the two holds something
    std::deque<Side> sends, receives;
    uint64_t sent = 0, received = 0;   // entered so far
    std::vector<Announced> receiving;  // where the network is wanted
  };
  struct Stream {  // a communicator's
    int64_t free = 0;
    bool busy = false;
    uint64_t collectives = 0;    // that entered
    uint64_t announced = 0;      // collectives that were called
    std::deque<Member> waiting;  // `entered`: as far as the rest of the rank is concerned
  };
  struct Flight {  // a unit of the current step
    int64_t launched = 0, compute_from = 0;
    int64_t entered = kNever, ended = kNever;
    int64_t met = 0, latest = 0;  // of the tasks that are done
    size_t open_tasks = 0;
  };
  // All units of a step have ended before the next step begins.
  struct RankState {
    int step = -1;
    uint32_t host_unit = 0, gpu_unit = 0, ended = 0;
    int blocked_on = -1;  // unit that the compute stream waits for
    int64_t host_free = 0, compute_free = 0, latest_end = 0;
    double host_delay_us = 0, compute_factor = 1;
    bool stopped = false, awake = false;
    std::vector<Flight> flights;
    std::array<Stream, kDims> streams;
  };

  const Program& program(int rank, int step) const;
  RankTimeline& timeline(int rank) { return timeline_.ranks[static_cast<size_t>(rank)]; }
  RankState& state(int rank) { return states_[static_cast<size_t>(rank)]; }
  size_t row(int rank, uint32_t unit) { return timeline(rank).step_begin.back() + unit; }

  std::vector<std::vector<int64_t>*> columns(RankTimeline& t) const;

  bool advance_host(int rank);
  bool end_step(int rank);
  void begin_step(int rank);
  bool stops(int rank, const Stop& stop);
  void call(int rank, int64_t not_before);
  bool advance_compute(int rank);
  bool advance_streams(int rank);
  void enter(int rank, uint32_t unit, int64_t when);
  void meet(int group, const Member& member, const Task& task, uint64_t index);
  void complete(int group, uint64_t index, const Task& task, Meeting& meeting);
  double slowness(Func func, int step) const;
  void announce(int rank, const Unit& unit, int64_t launched);
  Meeting& meeting(int group, uint64_t index);
  Pair& pair(int group, int from, int to);
  void notify_neighbours(int group, const Meeting& meeting);
  void notify_senders(const Pair& pair);
  void notify_unfinished();
  void exchange(int group, const Member& member, const std::vector<Task>& tasks);
  void transfer(int group, int from, int to, uint64_t bytes, size_t together, const Side& send,
                const Side& receive);
  void task_done(const Member& member, int64_t met, int64_t ended);
  void wake(int rank);

  const Layout& layout_;
  const std::vector<Program>& programs_;
  const Disturbance& disturbance_;
  std::vector<std::vector<Delay>> delays_;  // by rank
  const int steps_;
  const bool network_;
  const Random& random_;
  Links links_;
  Timeline timeline_;
  std::vector<RankState> states_;
  std::vector<Meetings> meetings_;        // by group
  std::vector<std::vector<Pair>> pairs_;  // by group: from * size + to
  std::vector<int> awake_;
};

}  // namespace lockstep::sim::job
