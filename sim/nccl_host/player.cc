// SPDX-License-Identifier: Apache-2.0
#include "nccl_host/player.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <climits>
#include <thread>

namespace lockstep::sim {
namespace {

// One thread's place in the hand-off. The word counts up to the batch that may run; waiting spins shortly,
// because the next batch is often a microsecond away, and then sleeps, because the machine may have fewer
// cores than threads.
class alignas(64) Turn {
 public:
  void wait_for(uint32_t batch) {
    for (int spin = 0; spin < 200; ++spin) {
      if (word_.load(std::memory_order_acquire) == batch) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    sleeping_.store(1);
    for (uint32_t seen = word_.load(); seen != batch; seen = word_.load())
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    sleeping_.store(0, std::memory_order_relaxed);
  }
  void give(uint32_t batch) {
    word_.store(batch);
    if (sleeping_.load() != 0) syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> word_ = UINT32_MAX;
  std::atomic<uint32_t> sleeping_ = 0;
};

struct Batch {
  uint16_t thread;
  size_t begin, end;
};

struct Segment {
  std::vector<Batch> batches;
  size_t begin = 0, end = 0;
  uint64_t count = 1;
};

class Player {
 public:
  Player(const Program& program, const PlayOptions& options, Core* core)
      : program_(program),
        options_(options),
        core_(core),
        turns_(program.threads.size()),
        stats_(program.threads.size()),
        barrier_(static_cast<std::ptrdiff_t>(program.threads.size())),
        late_ns_(options.late_ns != nullptr ? options.late_ns : &own_late_ns_) {
    const size_t size = program.calls.size();
    const size_t loop_end = std::min(program.loop_end, size),
                 loop_begin = std::min(program.loop_begin, loop_end);
    add_segment(0, loop_begin, 1);
    add_segment(loop_begin, loop_end, program.loop_count);
    add_segment(loop_end, size, 1);
    for (const Segment& segment : segments_)
      for (const Batch& batch : segment.batches) first_ = first_ ? first_ : &batch;
  }

  void run() {
    start_ns_ = monotonic_ns();
    if (first_ == nullptr) return;
    if (options_.tape_zero_ns != 0)
      start_ns_ = static_cast<uint64_t>(options_.tape_zero_ns) + program_.calls[0].when_ns;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < program_.threads.size(); ++i)
      threads.emplace_back([this, i] { run_thread(static_cast<uint16_t>(i)); });
    turns_[first_->thread].give(0);
    for (std::thread& thread : threads) thread.join();
  }

  Stats total() const {
    Stats sum;
    for (const Padded& stats : stats_) sum.merge(stats.value);
    return sum;
  }

 private:
  struct alignas(64) Padded {
    Stats value;
  };

  void add_segment(size_t begin, size_t end, uint64_t count) {
    if (begin == end || count == 0) return;
    Segment segment{{}, begin, end, count};
    for (size_t i = begin; i < end; ++i) {
      const uint16_t thread = program_.calls[i].thread;
      if (i == begin || thread != segment.batches.back().thread) segment.batches.push_back({thread, i, i});
      segment.batches.back().end = i + 1;
    }
    segments_.push_back(std::move(segment));
  }

  void run_thread(uint16_t thread) {
    pthread_setname_np(pthread_self(), program_.threads[thread].substr(0, 15).c_str());
    prctl(PR_SET_TIMERSLACK, 1);
    // Where that is allowed: on few cores the pace is lost to whatever else runs.
    const sched_param least{sched_get_priority_min(SCHED_RR)};
    if (options_.recorded_pace) sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &least);
    program_.ordered ? run_ordered(thread) : run_free(thread);
  }

  // Every thread walks the same list of batches and runs its own; the last batch hands over to nobody.
  void run_ordered(uint16_t thread) {
    uint32_t sequence = 0;
    uint64_t round = 0;
    for (uint64_t pass = 0; pass < options_.repeat; ++pass) {
      for (size_t s = 0; s < segments_.size(); ++s) {
        for (uint64_t turn = 0; turn < segments_[s].count; ++turn, ++round) {
          const auto& batches = segments_[s].batches;
          for (size_t b = 0; b < batches.size(); ++b, ++sequence) {
            if (batches[b].thread != thread) continue;
            const bool continues = b > 0 ? false : sequence > 0 && previous_thread(pass, s, turn) == thread;
            if (!continues) turns_[thread].wait_for(sequence);
            run_batch(batches[b], pass, round);
            const int next = next_thread(pass, s, turn, b);
            if (next >= 0 && next != thread) turns_[static_cast<size_t>(next)].give(sequence + 1);
          }
        }
      }
    }
  }

  int previous_thread(uint64_t pass, size_t s, uint64_t turn) const {
    if (turn > 0) return segments_[s].batches.back().thread;
    if (s > 0) return segments_[s - 1].batches.back().thread;
    return pass > 0 ? segments_.back().batches.back().thread : -1;
  }

  int next_thread(uint64_t pass, size_t s, uint64_t turn, size_t b) const {
    if (b + 1 < segments_[s].batches.size()) return segments_[s].batches[b + 1].thread;
    if (turn + 1 < segments_[s].count) return segments_[s].batches.front().thread;
    if (s + 1 < segments_.size()) return segments_[s + 1].batches.front().thread;
    return pass + 1 < options_.repeat ? segments_.front().batches.front().thread : -1;
  }

  void run_batch(const Batch& batch, uint64_t pass, uint64_t round) {
    // The pace starts anew with every pass of the program.
    if (batch.begin == 0) pass_start_ns_ = pass == 0 ? start_ns_ : monotonic_ns() - late_ns_->load();
    for (size_t i = batch.begin; i < batch.end; ++i) {
      const Call& call = program_.calls[i];
      if (options_.recorded_pace) keep_pace(call);
      core_->execute(call, round, &stats_[batch.thread].value);
    }
  }

  // Keeps the recorded distances: a call that comes late delays all that follow, of all processes of the job.
  void keep_pace(const Call& call) {
    const uint64_t on_time = pass_start_ns_ + (call.when_ns - program_.calls[0].when_ns);
    uint64_t late = UINT64_MAX;
    while (late != late_ns_->load()) {  // somebody may come late while this one sleeps
      late = late_ns_->load();
      sleep_until(on_time + late);
    }
    const uint64_t now = monotonic_ns();
    while (now > on_time + late && !late_ns_->compare_exchange_weak(late, now - on_time)) {
    }
    core_->set_delay(std::max(late, now > on_time ? now - on_time : 0));
  }

  static void sleep_until(uint64_t when_ns) {
    const timespec when{static_cast<time_t>(when_ns / 1'000'000'000u),
                        static_cast<long>(when_ns % 1'000'000'000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) != 0) {
    }
  }

  void run_free(uint16_t thread) {
    uint64_t round = 0;
    for (uint64_t pass = 0; pass < options_.repeat; ++pass)
      for (const Segment& segment : segments_)
        for (uint64_t turn = 0; turn < segment.count; ++turn, ++round)
          for (size_t i = segment.begin; i < segment.end; ++i) {
            const Call& call = program_.calls[i];
            if (call.kind == CallKind::kBarrier) {
              barrier_.arrive_and_wait();
            } else if (call.thread == thread) {
              core_->execute(call, round, &stats_[thread].value);
            }
          }
  }

  const Program& program_;
  const PlayOptions& options_;
  Core* core_;
  std::vector<Segment> segments_;
  const Batch* first_ = nullptr;
  std::vector<Turn> turns_;
  std::vector<Padded> stats_;
  std::barrier<> barrier_;
  uint64_t start_ns_ = 0;
  // Written by the batch that has the turn, read by those after it.
  uint64_t pass_start_ns_ = 0;
  std::atomic<uint64_t> own_late_ns_ = 0;
  std::atomic<uint64_t>* const late_ns_;
};

// Threads that init and finalize comms of their own while the program plays.
class InitRace {
 public:
  static constexpr size_t kThreads = 4;
  static constexpr uint64_t kCommsPerThread = 64;

  explicit InitRace(Core* core) {
    for (size_t i = 0; i < kThreads; ++i)
      threads_.emplace_back([this, core, i] {
        for (uint64_t n = 0; n < kCommsPerThread; ++n) core->race_comm((i << 32) + n, &stats_[i]);
      });
  }
  void join(Stats* total) {
    for (std::thread& thread : threads_) thread.join();
    for (const Stats& stats : stats_) total->merge(stats);
  }

 private:
  Stats stats_[kThreads];
  std::vector<std::thread> threads_;
};

}  // namespace

PlayResult play(const Program& program, const PlayOptions& options, Core* core) {
  PlayResult result;
  Player player(program, options, core);
  std::optional<InitRace> race;
  if (options.race_inits) race.emplace(core);
  const uint64_t begin = monotonic_ns();
  player.run();
  result.seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  result.stats = player.total();
  if (race) race->join(&result.stats);
  return result;
}

}  // namespace lockstep::sim
