// SPDX-License-Identifier: Apache-2.0
// Every rank sends to the next and receives from the one before.
#include "example.h"

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  return run_ranks(ranks, [ranks](int rank, const ncclUniqueId& id) {
    Device device;
    device.open(rank, ranks);
    ncclComm_t comm;
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    for (size_t count : {size_t{256}, size_t{1} << 10, kMost}) {
      NCCL(ncclGroupStart());
      NCCL(ncclSend(device.in, count, ncclFloat, (rank + 1) % ranks, comm, device.stream));
      NCCL(ncclRecv(device.out, count, ncclFloat, (rank + ranks - 1) % ranks, comm, device.stream));
      NCCL(ncclGroupEnd());
    }
    device.wait();
    NCCL(ncclCommDestroy(comm));
  });
}
