// SPDX-License-Identifier: Apache-2.0
// What an observer costs NCCL: one process per GPU, each case repeated in blocks; rank 0 prints one JSON line with the
// median time per operation in microseconds. Run it once per observer, interleaved (run_overhead does).
//   nvcc -O2 -o collective_latency collective_latency.cc -lnccl && collective_latency GPUS LABEL
#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s failed with %d\n", what, status);
  _exit(1);
}
#define CHECK(call) check(static_cast<int>(call), #call)

struct Rendezvous {
  ncclUniqueId id;
  std::atomic<int> ready{0};
};

class Rank {
 public:
  Rank(int rank, int ranks, const ncclUniqueId& id) : rank_(rank), ranks_(ranks) {
    CHECK(cudaSetDevice(rank));
    CHECK(ncclCommInitRank(&comm_, ranks, id, rank));
    CHECK(cudaStreamCreate(&stream_));
    CHECK(cudaMalloc(&in_, kBytes));
    CHECK(cudaMalloc(&out_, kBytes));
    CHECK(cudaMemset(in_, 0, kBytes));
  }
  ~Rank() { CHECK(ncclCommDestroy(comm_)); }

  void all_reduce(size_t bytes) {
    CHECK(ncclAllReduce(in_, out_, bytes / 4, ncclFloat, ncclSum, comm_, stream_));
  }
  void exchange(size_t bytes) {
    CHECK(ncclGroupStart());
    CHECK(ncclSend(in_, bytes / 4, ncclFloat, (rank_ + 1) % ranks_, comm_, stream_));
    CHECK(ncclRecv(out_, bytes / 4, ncclFloat, (rank_ + ranks_ - 1) % ranks_, comm_, stream_));
    CHECK(ncclGroupEnd());
  }
  void wait() { CHECK(cudaStreamSynchronize(stream_)); }

  // Median over blocks of the time per operation, in us. Ranks start each block together.
  template <class Operation>
  double measure(Operation operation, int operations, int blocks) {
    std::vector<double> times;
    for (int block = -1; block < blocks; ++block) {
      all_reduce(8);
      wait();
      auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < operations; ++i) operation();
      wait();
      std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
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
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: collective_latency GPUS LABEL\n");
    return 2;
  }
  const int ranks = std::atoi(argv[1]);
  void* shared = mmap(nullptr, sizeof(Rendezvous), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* rendezvous = new (shared) Rendezvous;
  int rank = 0;
  for (int r = 1; r < ranks && rank == 0; ++r)
    if (fork() == 0) rank = r;
  setenv("RANK", std::to_string(rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
  CHECK(cudaSetDevice(rank));
  if (rank == 0) {
    CHECK(ncclGetUniqueId(&rendezvous->id));
    rendezvous->ready.store(1);
  }
  while (rendezvous->ready.load() == 0) usleep(100);
  {
    Rank me(rank, ranks, rendezvous->id);
    double tiny = me.measure([&] { me.all_reduce(8); }, 500, 15);
    double synced = me.measure(
        [&] {
          me.all_reduce(8);
          me.wait();
        },
        200, 9);
    double medium = me.measure([&] { me.all_reduce(1 << 20); }, 200, 15);
    double large = me.measure([&] { me.all_reduce(64 << 20); }, 20, 7);
    double exchange = me.measure([&] { me.exchange(4096); }, 300, 9);
    if (rank == 0)
      std::printf(
          "{\"observer\":\"%s\",\"gpus\":%d,\"allreduce_8B_us\":%.3f,\"allreduce_8B_sync_us\":%.3f,"
          "\"allreduce_1MB_us\":%.3f,\"allreduce_64MB_us\":%.2f,\"sendrecv_4KB_us\":%.3f}\n",
          argv[2], ranks, tiny, synced, medium, large, exchange);
  }
  if (rank != 0) return 0;
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  return failed != 0;
}
