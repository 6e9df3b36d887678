// SPDX-License-Identifier: Apache-2.0
// What a group is to NCCL: several collectives of one communicator become fewer kernels; a group may hold
// collectives and sends; a group inside a group ends with the outer one.
#include "example.h"

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  return run_ranks(ranks, [ranks](int rank, const ncclUniqueId& id) {
    Device device;
    device.open(rank, ranks);
    ncclComm_t comm;
    NCCL(ncclCommInitRank(&comm, ranks, id, rank));
    auto all_reduce = [&](size_t count) {
      NCCL(ncclAllReduce(device.in, device.out, count, ncclFloat, ncclSum, comm, device.stream));
    };
    all_reduce(2);  // the first operation connects

    NCCL(ncclGroupStart());
    for (size_t count : {size_t{2}, size_t{4} << 10, kMost}) all_reduce(count);
    NCCL(ncclGroupEnd());

    NCCL(ncclGroupStart());
    NCCL(ncclAllGather(device.in, device.out, 1 << 10, ncclFloat, comm, device.stream));
    NCCL(ncclSend(device.in, 1 << 10, ncclFloat, (rank + 1) % ranks, comm, device.stream));
    NCCL(ncclRecv(device.out, 1 << 10, ncclFloat, (rank + ranks - 1) % ranks, comm, device.stream));
    NCCL(ncclGroupEnd());

    NCCL(ncclGroupStart());
    all_reduce(256);
    NCCL(ncclGroupStart());
    all_reduce(512);
    NCCL(ncclGroupEnd());
    all_reduce(1024);
    NCCL(ncclGroupEnd());

    device.wait();
    NCCL(ncclCommDestroy(comm));
  });
}
