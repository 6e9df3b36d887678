// SPDX-License-Identifier: Apache-2.0
// One process, a thread a GPU: every rank of the communicator is in the same process.
#include <thread>
#include <vector>

#include "example.h"

int main(int argc, char** argv) {
  const int ranks = gpus_of(argc, argv);
  ncclUniqueId id;
  NCCL(ncclGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([rank, ranks, id] {
      Device device;
      device.open(rank, ranks);
      ncclComm_t comm;
      NCCL(ncclCommInitRank(&comm, ranks, id, rank));
      for (int i = 0; i < 4; ++i)
        NCCL(ncclAllReduce(device.in, device.out, kMost, ncclFloat, ncclSum, comm, device.stream));
      device.wait();
      NCCL(ncclCommDestroy(comm));
    });
  }
  for (std::thread& thread : threads) thread.join();
}
