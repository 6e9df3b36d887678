// SPDX-License-Identifier: Apache-2.0
#include "job/live.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <vector>

#include "job/live_calls.h"

namespace lockstep::sim::job {
namespace {

using Counter = std::atomic<uint64_t>;
static_assert(Counter::is_always_lock_free);

constexpr int64_t kPollNs = 200'000;

void nap(int64_t ns) {
  timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

// For who watches the job: seconds since the epoch.
void print_time(const char* what) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::printf("%s %lld.%06ld\n", what, static_cast<long long>(now.tv_sec), now.tv_nsec / 1000);
  std::fflush(stdout);
}

// How far every member of every group is: collectives entered, and sends made to each member. Lives in a
// mapping that all processes share.
class Progress {
 public:
  explicit Progress(const Layout& layout) : layout_(layout) {
    size_t counters = 0;
    for (const Group& group : layout.groups()) {
      first_.push_back(counters);
      counters += group.ranks.size() * (1 + group.ranks.size());
    }
    bytes_ = counters * sizeof(Counter);
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    counters_ = at == MAP_FAILED ? nullptr : static_cast<Counter*>(at);
  }
  ~Progress() {
    if (counters_ != nullptr) munmap(counters_, bytes_);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool usable() const { return counters_ != nullptr; }
  Counter& entered(int group, int member) {
    return counters_[first_[static_cast<size_t>(group)] + static_cast<size_t>(member)];
  }
  Counter& sent(int group, int from, int to) {
    const auto size = static_cast<size_t>(layout_.group(group).size());
    return counters_[first_[static_cast<size_t>(group)] + size + static_cast<size_t>(from) * size +
                     static_cast<size_t>(to)];
  }

 private:
  const Layout& layout_;
  std::vector<size_t> first_;
  size_t bytes_ = 0;
  Counter* counters_ = nullptr;
};

class LiveRank {
 public:
  LiveRank(const Job& job, Progress& progress, LiveCalls& calls, int rank)
      : job_(job), progress_(progress), calls_(calls), rank_(rank) {
    received_.resize(static_cast<size_t>(job.layout.ranks()));
  }

  void run() {
    for (int d = 0; d < kDims; ++d) {
      const int group = job_.layout.group_of(rank_, static_cast<Dim>(d));
      if (group >= 0)
        calls_.create_comm(job_.layout.group(group), job_.layout.rank_in(rank_, static_cast<Dim>(d)));
    }
    print_time("begin");
    for (int step = 0; step < job_.options.steps; ++step) {
      sleep_late(step);
      const Program& program = job_.program(rank_, step);
      if (job_.fault.disturbance.programs.contains({rank_, step}) && !job_.fault.truth.classes.empty())
        begin_fault();
      for (size_t u = 0; u < program.size(); ++u) {
        const Position at{step, static_cast<int>(u)};
        if (stops(at, false)) return;
        play(program[u]);
        if (stops(at, true)) return;
      }
      finish_all();
    }
    calls_.finalize();
  }

 private:
  struct Flight {
    const Unit* unit;
    int group;
    uint64_t collective;             // index, of a collective
    std::vector<uint64_t> receives;  // how many the sender must have sent, by task
    LiveCalls::Kernels kernels;
  };

  void sleep_late(int step) {
    for (const Delay& delay : job_.fault.disturbance.delays) {
      if (delay.rank != rank_ || step < delay.from_step || step >= delay.until_step) continue;
      begin_fault();
      nap(static_cast<int64_t>(delay.host_us * 1000));
    }
  }

  void begin_fault() {
    if (!fault_began_) print_time("onset");
    fault_began_ = true;
  }

  // True when the process has to end in order.
  bool stops(Position at, bool called) {
    const auto found = job_.fault.disturbance.stops.find(rank_);
    if (found == job_.fault.disturbance.stops.end() || found->second.at != at) return false;
    const Stop::Manner manner = found->second.manner;
    if (called != (manner == Stop::Manner::kKilledInside)) return false;
    begin_fault();
    if (manner == Stop::Manner::kFinished || manner == Stop::Manner::kKilled) finish_all();
    if (manner == Stop::Manner::kFinished) return true;
    if (manner == Stop::Manner::kKilled || manner == Stop::Manner::kKilledInside) raise(SIGKILL);
    if (manner == Stop::Manner::kStopped) raise(SIGSTOP);
    for (;;) pause();
  }

  void play(const Unit& unit) {
    nap(static_cast<int64_t>(unit.compute_us * 1000));
    if (unit.joins) finish_all();
    Flight flight{&unit, job_.layout.group_of(rank_, unit.dim), 0, {}, calls_.call(unit)};
    const int me = job_.layout.rank_in(rank_, unit.dim);
    if (!unit.tasks.front().is_p2p()) flight.collective = progress_.entered(flight.group, me)++;
    for (const Task& task : unit.tasks) {
      if (task.func == Func::kSend) ++progress_.sent(flight.group, me, task.peer);
      if (task.func == Func::kRecv)
        flight.receives.push_back(++received_[static_cast<size_t>(
            job_.layout.group(flight.group).ranks[static_cast<size_t>(task.peer)])][flight.group]);
    }
    flights_.push_back(std::move(flight));
    if (unit.blocks) finish_all();
  }

  bool done(const Flight& flight) {
    const Group& group = job_.layout.group(flight.group);
    const int me = job_.layout.rank_in(rank_, group.dim);
    if (!flight.unit->tasks.front().is_p2p()) {
      if (job_.fault.disturbance.halted.contains({flight.group, flight.collective})) return false;
      for (int member = 0; member < group.size(); ++member) {
        if (progress_.entered(flight.group, member) <= flight.collective) return false;
      }
      return true;
    }
    size_t receive = 0;
    for (const Task& task : flight.unit->tasks) {
      if (task.func == Func::kRecv &&
          progress_.sent(flight.group, task.peer, me) < flight.receives[receive++])
        return false;
    }
    return true;
  }

  void finish_all() {
    for (; !flights_.empty(); flights_.pop_front()) {
      while (!done(flights_.front())) nap(kPollNs);
      calls_.end(flights_.front().kernels);
    }
  }

  const Job& job_;
  Progress& progress_;
  LiveCalls& calls_;
  const int rank_;
  bool fault_began_ = false;
  std::deque<Flight> flights_;
  std::vector<std::map<int, uint64_t>> received_;  // by global rank and group
};

void set(const char* name, int value) { setenv(name, std::to_string(value).c_str(), 1); }

int be_rank(const Job& job, const LiveOptions& options, Progress& progress, int rank) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("LOCKSTEP_DIR", options.directory.c_str(), 1);
  setenv("LOCKSTEP_MODE",
         job.deep()                                ? "deep"
         : job.options.mode == format::Mode::kLite ? "lite"
                                                   : "default",
         1);
  set("RANK", rank);
  set("LOCAL_RANK", rank);
  set("WORLD_SIZE", job.layout.ranks());
  set("LOCAL_WORLD_SIZE", job.layout.ranks());
  set("GROUP_RANK", 0);
  auto calls = LiveCalls::open(options.plugin);
  if (!calls) {
    std::fprintf(stderr, "lockstep-sim-job: rank %d: %s\n", rank, calls.error().message().c_str());
    return 2;
  }
  LiveRank(job, progress, *calls, rank).run();
  return 0;
}

std::atomic<bool> g_ended{false};
void end_run(int) { g_ended = true; }

void describe(const Job& job, const std::vector<pid_t>& children) {
  for (size_t rank = 0; rank < children.size(); ++rank)
    std::printf("rank %zu: pid %d\n", rank, static_cast<int>(children[rank]));
  const Truth& truth = job.fault.truth;
  if (!truth.classes.empty()) {
    std::printf("fault: %s", truth.classes.front().c_str());
    for (int rank : truth.ranks) std::printf(" rank %d", rank);
    if (truth.group >= 0)
      std::printf(", %s of %s, index %lld", truth.func.c_str(), job.layout.group(truth.group).name.c_str(),
                  static_cast<long long>(truth.op_index));
    std::printf(", in step %d\n", truth.since_step);
  }
  std::fflush(stdout);
}

// Whether processes alone can show the fault.
bool can_be_live(const Disturbance& d) {
  return d.stuck_compute.empty() && d.slow_edges.empty() && d.slow_funcs.empty() && d.lost_files.empty() &&
         d.socket_hosts.empty() && d.ring_chunks.empty() && d.dies_after_ms.empty() &&
         d.new_group.group.ranks.empty() && d.starts_ms.empty();
}

}  // namespace

Result<void> run_live(const Job& job, const LiveOptions& options) {
  if (!can_be_live(job.fault.disturbance) || !job.fault.earlier.empty() || job.options.end_share < 1)
    return Error{ErrorCode::kUsage, "this fault needs a simulated clock, GPU or network: not with --live",
                 ""};
  std::error_code failed;
  std::filesystem::create_directories(options.directory, failed);
  if (failed) return Error{ErrorCode::kIo, "cannot be made: " + failed.message(), options.directory};
  Progress progress(job.layout);
  if (!progress.usable()) return Error{ErrorCode::kIo, "no shared memory", ""};
  struct sigaction action {};
  action.sa_handler = end_run;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < job.layout.ranks(); ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGINT, SIG_DFL);
      signal(SIGTERM, SIG_DFL);
      exit(be_rank(job, options, progress, rank));
    }
    if (child > 0) children.push_back(child);
  }
  describe(job, children);
  for (size_t ended = 0; ended < children.size() && !g_ended;) {
    if (waitpid(-1, nullptr, WNOHANG) > 0) {
      ++ended;
    } else {
      nap(20'000'000);
    }
  }
  for (pid_t child : children) {
    if (g_ended) kill(child, SIGKILL);
  }
  return {};
}

}  // namespace lockstep::sim::job
