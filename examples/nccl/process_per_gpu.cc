// SPDX-License-Identifier: Apache-2.0
// A process a GPU, as frameworks do it; the communicator has a name.
#include "example.h"

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  return run_ranks(ranks, [ranks](int rank, const ncclUniqueId& id) {
    Device device;
    device.open(rank, ranks);
    ncclComm_t comm;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.commName = "world";
    NCCL(ncclCommInitRankConfig(&comm, ranks, id, rank, &config));
    for (size_t count : {size_t{2}, size_t{16} << 10, kMost}) {
      NCCL(ncclAllReduce(device.in, device.out, count, ncclFloat, ncclSum, comm, device.stream));
      NCCL(ncclAllGather(device.in, device.out, count, ncclFloat, comm, device.stream));
      NCCL(ncclReduceScatter(device.out, device.in, count, ncclFloat, ncclMax, comm, device.stream));
      NCCL(ncclBroadcast(device.in, device.out, count, ncclFloat, 0, comm, device.stream));
    }
    device.wait();
    NCCL(ncclCommDestroy(comm));
  });
}
