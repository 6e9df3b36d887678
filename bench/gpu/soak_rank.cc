// SPDX-License-Identifier: Apache-2.0
// One rank of soak.py: mixed operations until somebody ends the process. Sizes from bytes to megabytes, three
// communicators, two streams, groups, rings of sends and receives; the splits share resources. Every rank
// takes the same operations in the same order.
//   RANK=R WORLD_SIZE=N soak_rank ID_FILE COUNTS_FILE
// COUNTS_FILE is shared: two numbers a rank, how many operations it has begun to call and how many calls have
// returned. They outlive the process, whatever ends it.
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <random>

#include "rank.h"

namespace {

struct Counts {
  std::atomic<uint64_t> begun, returned;
};

Counts* map_counts(const char* path, int rank, int ranks) {
  const int file = open(path, O_RDWR);
  CHECK(file < 0);
  void* mapped =
      mmap(nullptr, sizeof(Counts) * static_cast<size_t>(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  CHECK(mapped == MAP_FAILED);
  return static_cast<Counts*>(mapped) + rank;
}

class Soak {
 public:
  Soak(int rank, int ranks, const ncclUniqueId& id, Counts* counts)
      : rank_(rank), ranks_(ranks), counts_(counts) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "world";
    config.splitShare = 1;  // what is split off this one shares its resources
    CHECK(ncclCommInitRankConfig(&world_, ranks, id, rank, &config));
    config.commName = "halves";
    CHECK(ncclCommSplit(world_, rank % 2, rank, &half_, &config));
    config.commName = "again";
    CHECK(ncclCommSplit(world_, 0, rank, &again_, &config));
    for (cudaStream_t& stream : streams_) CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&in_, kBytes));
    CHECK(cudaMalloc(&out_, kBytes * static_cast<size_t>(ranks)));
    CHECK(cudaMemset(in_, 0, kBytes));
  }

  // Some tens of operations, then a pause: the files of ten minutes stay small enough to be read within one.
  void run_batch() {
    for (int i = 0; i < 24; ++i) run_one();
    for (cudaStream_t stream : streams_) CHECK(cudaStreamSynchronize(stream));
    usleep(20000);
  }

 private:
  static constexpr size_t kBytes = size_t{16} << 20;

  template <class Call>
  void counted(Call call) {
    counts_->begun.fetch_add(1);
    CHECK(call());
    counts_->returned.fetch_add(1);
  }

  void run_one() {
    constexpr size_t kSizes[] = {8, 512, 32 << 10, 1 << 20, kBytes};
    const size_t count = kSizes[random_() % 5] / 4;
    const unsigned kind = random_() % 8;
    // Of a communicator of one rank NCCL reports nothing: with fewer than four ranks the halves are left out.
    ncclComm_t comm = kind < 5 ? world_ : kind < 7 && ranks_ >= 4 ? half_ : again_;
    cudaStream_t stream = streams_[random_() % 2];
    switch (random_() % 6) {
      case 0:
        return counted([&] { return ncclAllGather(in_, out_, count, ncclFloat, comm, stream); });
      case 1:
        return counted([&] { return ncclBroadcast(in_, out_, count, ncclFloat, 0, comm, stream); });
      case 2:
        return exchange(count, stream);
      case 3:
        return grouped(count, stream);
      default:
        return counted([&] { return ncclAllReduce(in_, out_, count, ncclFloat, ncclSum, comm, stream); });
    }
  }

  void exchange(size_t count, cudaStream_t stream) {
    CHECK(ncclGroupStart());
    counted([&] { return ncclSend(in_, count, ncclFloat, (rank_ + 1) % ranks_, world_, stream); });
    counted([&] { return ncclRecv(out_, count, ncclFloat, (rank_ + ranks_ - 1) % ranks_, world_, stream); });
    CHECK(ncclGroupEnd());
  }

  void grouped(size_t count, cudaStream_t stream) {
    CHECK(ncclGroupStart());
    for (int i = 0; i < 3; ++i)
      counted([&] { return ncclAllReduce(in_, out_, count / 4 + 1, ncclFloat, ncclMax, world_, stream); });
    CHECK(ncclGroupEnd());
  }

  int rank_, ranks_;
  Counts* counts_;
  ncclComm_t world_{}, half_{}, again_{};
  cudaStream_t streams_[2]{};
  void *in_{}, *out_{};
  std::minstd_rand random_{1};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: RANK=R WORLD_SIZE=N soak_rank ID_FILE COUNTS_FILE\n");
    return 2;
  }
  const int rank = number_of("RANK"), ranks = number_of("WORLD_SIZE");
  int gpus = 0;
  CHECK(cudaGetDeviceCount(&gpus));
  CHECK(cudaSetDevice(rank % gpus));
  Soak soak(rank, ranks, agree_on_id(rank, argv[1]), map_counts(argv[2], rank, ranks));
  while (true) soak.run_batch();
}
