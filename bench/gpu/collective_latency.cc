// SPDX-License-Identifier: Apache-2.0
// One rank of what run_overhead measures with: NCCL alone, without a framework.
//   RANK=R WORLD_SIZE=N collective_latency ID_FILE        says "ready"; for each line on stdin measures every
//                                                         case once and answers with a line of JSON; at the
//                                                         end of stdin says what it used. The first round
//                                                         also connects
//   RANK=R WORLD_SIZE=N collective_latency ID_FILE events CUDA events around single operations, as JSON
// Rank 0 writes NCCL's id to ID_FILE. Between rounds nothing spins, and the GPU is idle:
// ranks of several observers can wait side by side.
#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "rank.h"

namespace {

using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

long peak_rss_kib() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

class Rank {
 public:
  Rank(int rank, int ranks, const ncclUniqueId& id) : rank_(rank), ranks_(ranks) {
    CHECK(ncclCommInitRank(&comm_, ranks, id, rank));
    CHECK(cudaStreamCreate(&stream_));
    CHECK(cudaMalloc(&in_, kBytes));
    CHECK(cudaMalloc(&out_, kBytes));
    CHECK(cudaMemset(in_, 0, kBytes));
  }
  ~Rank() { CHECK(ncclCommDestroy(comm_)); }

  void all_reduce(size_t bytes) {
    CHECK(ncclAllReduce(in_, out_, bytes / 4, ncclFloat, ncclSum, comm_, stream_));
    ++collectives_;
  }
  void exchange(size_t bytes) {
    CHECK(ncclGroupStart());
    CHECK(ncclSend(in_, bytes / 4, ncclFloat, (rank_ + 1) % ranks_, comm_, stream_));
    CHECK(ncclRecv(out_, bytes / 4, ncclFloat, (rank_ + ranks_ - 1) % ranks_, comm_, stream_));
    CHECK(ncclGroupEnd());
    p2ps_ += 2;
  }
  void wait() { CHECK(cudaStreamSynchronize(stream_)); }
  cudaStream_t stream() const { return stream_; }
  unsigned long collectives() const { return collectives_; }
  unsigned long operations() const { return collectives_ + p2ps_; }

  // Median over blocks of the time per operation, in us. Ranks start each block together.
  template <class Operation>
  double measure(Operation operation, int operations, int blocks) {
    std::vector<double> times;
    for (int block = -1; block < blocks; ++block) {
      all_reduce(8);
      wait();
      const auto begin = Clock::now();
      for (int i = 0; i < operations; ++i) operation();
      wait();
      const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
      if (block >= 0) times.push_back(took.count() / operations);  // the first block warms up
    }
    std::nth_element(times.begin(), times.begin() + blocks / 2, times.end());
    return times[static_cast<size_t>(blocks / 2)];
  }

 private:
  static constexpr size_t kBytes = size_t{64} << 20;
  int rank_, ranks_;
  ncclComm_t comm_{};
  cudaStream_t stream_{};
  void *in_{}, *out_{};
  unsigned long collectives_ = 0, p2ps_ = 0;
};

// Every case once, as a line of JSON.
std::string run_round(Rank& me) {
  const double cpu = cpu_seconds();
  const auto begin = Clock::now();
  const double tiny = me.measure([&] { me.all_reduce(8); }, 500, 5);
  const double synced = me.measure(
      [&] {
        me.all_reduce(8);
        me.wait();
      },
      200, 5);
  const double medium = me.measure([&] { me.all_reduce(1 << 20); }, 200, 5);
  const double large = me.measure([&] { me.all_reduce(64 << 20); }, 20, 5);
  const double exchange = me.measure([&] { me.exchange(4096); }, 300, 5);
  const std::chrono::duration<double> took = Clock::now() - begin;
  char line[320];
  std::snprintf(line, sizeof line,
                "{\"allreduce_8B_us\":%.3f,\"allreduce_8B_sync_us\":%.3f,\"allreduce_1MB_us\":%.3f,"
                "\"allreduce_64MB_us\":%.2f,"
                "\"sendrecv_4KB_us\":%.3f,\"cpu_s\":%.6f,\"wall_s\":%.6f}\n",
                tiny, synced, medium, large, exchange, cpu_seconds() - cpu, took.count());
  return line;
}

void answer_rounds(Rank& me) {
  std::printf("{\"ready\":true}\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s", run_round(me).c_str());
    std::fflush(stdout);
  }
  std::printf("{\"operations\":%lu,\"peak_rss_kib\":%ld}\n", me.operations(), peak_rss_kib());
}

// Holds a stream until everything is queued behind it, so that events around an operation see the GPU and not
// the host.
class Gate {
 public:
  explicit Gate(cudaStream_t stream) { CHECK(cudaLaunchHostFunc(stream, hold, &open_)); }
  void open() { open_.store(true); }

 private:
  static void hold(void* open) {
    const auto give_up = Clock::now() + std::chrono::seconds(2);
    while (!static_cast<std::atomic<bool>*>(open)->load() && Clock::now() < give_up) {
    }
  }
  std::atomic<bool> open_{false};
};

struct Bracket {
  cudaEvent_t begin{}, end{};
  Bracket() {
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
  }
  double us() const {
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    return 1000.0 * static_cast<double>(milliseconds);
  }
};

// What lies between two events beside an operation also lies between those around this.
__global__ void do_nothing() {}

// Durations by the operation's index on its communicator, and what events say of a kernel that does nothing.
void time_with_events(Rank& me) {
  constexpr size_t kSizes[] = {8, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
  constexpr int kBatches = 3, kInBatch = 10;
  std::vector<Bracket> brackets(kInBatch), empty(kInBatch);
  std::string operations, nothing;
  for (size_t bytes : kSizes) {
    for (int i = 0; i < 3; ++i) me.all_reduce(bytes);
    me.wait();
    for (int batch = 0; batch < kBatches; ++batch) {
      const unsigned long first = me.collectives();
      Gate gate(me.stream());
      for (size_t i = 0; i < kInBatch; ++i) {
        CHECK(cudaEventRecord(brackets[i].begin, me.stream()));
        me.all_reduce(bytes);
        CHECK(cudaEventRecord(brackets[i].end, me.stream()));
        CHECK(cudaEventRecord(empty[i].begin, me.stream()));
        do_nothing<<<1, 1, 0, me.stream()>>>();
        CHECK(cudaEventRecord(empty[i].end, me.stream()));
      }
      gate.open();
      me.wait();
      for (size_t i = 0; i < kInBatch; ++i) {
        char text[128];
        std::snprintf(text, sizeof text, "%s{\"op_index\":%lu,\"bytes\":%zu,\"us\":%.3f}",
                      operations.empty() ? "" : ",", first + i, bytes, brackets[i].us());
        operations += text;
        std::snprintf(text, sizeof text, "%s%.3f", nothing.empty() ? "" : ",", empty[i].us());
        nothing += text;
      }
    }
  }
  std::printf("{\"operations\":[%s],\"nothing_us\":[%s]}\n", operations.c_str(), nothing.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const bool events = argc == 3 && std::strcmp(argv[2], "events") == 0;
  if (argc != 2 && !events) {
    std::fprintf(stderr, "usage: RANK=R WORLD_SIZE=N collective_latency ID_FILE [events]\n");
    return 2;
  }
  const int rank = number_of("RANK"), ranks = number_of("WORLD_SIZE");
  CHECK(cudaSetDevice(rank));
  Rank me(rank, ranks, agree_on_id(rank, argv[1]));
  if (events)
    time_with_events(me);
  else
    answer_rounds(me);
  std::fflush(stdout);
}
