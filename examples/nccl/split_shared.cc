// SPDX-License-Identifier: Apache-2.0
// A communicator split in two that share its resources, proxy thread and network connections among them. It
// is the parent that says so, when it is made.
#include "example.h"

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  return run_ranks(ranks, [ranks](int rank, const ncclUniqueId& id) {
    Device device;
    device.open(rank, ranks);
    ncclComm_t world, half;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "world";
    config.splitShare = 1;
    NCCL(ncclCommInitRankConfig(&world, ranks, id, rank, &config));
    ncclConfig_t child = NCCL_CONFIG_INITIALIZER;
    child.commName = rank < ranks / 2 ? "lower half" : "upper half";
    NCCL(ncclCommSplit(world, rank < ranks / 2 ? 0 : 1, rank, &half, &child));
    for (int i = 0; i < 3; ++i) {
      NCCL(ncclAllReduce(device.in, device.out, kMost, ncclFloat, ncclSum, world, device.stream));
      NCCL(ncclAllReduce(device.in, device.out, kMost, ncclFloat, ncclSum, half, device.stream));
    }
    device.wait();
    NCCL(ncclCommDestroy(half));
    NCCL(ncclCommDestroy(world));
  });
}
