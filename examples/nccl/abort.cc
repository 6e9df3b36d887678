// SPDX-License-Identifier: Apache-2.0
// The last rank does not join an all-reduce; the others wait two seconds and abort the communicator.
#include <chrono>

#include "example.h"

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  return run_ranks(ranks, [ranks](int rank, const ncclUniqueId& id) {
    Device device;
    device.open(rank, ranks);
    ncclComm_t comm;
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    auto all_reduce = [&] {
      NCCL(ncclAllReduce(device.in, device.out, kMost, ncclFloat, ncclSum, comm, device.stream));
    };
    for (int i = 0; i < 3; ++i) all_reduce();
    device.wait();

    if (rank != ranks - 1) all_reduce();
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < give_up &&
           (rank == ranks - 1 || cudaStreamQuery(device.stream) == cudaErrorNotReady))
      usleep(1000);
    NCCL(ncclCommAbort(comm));
  });
}
