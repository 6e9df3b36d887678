// SPDX-License-Identifier: Apache-2.0
// One process drives every GPU from one thread: what would wait for another rank has to be in a group with
// it.
#include <vector>

#include "example.h"

int main(int argc, char** argv) {
  const int ranks = gpus_of(argc, argv);
  std::vector<Device> devices(static_cast<size_t>(ranks));
  std::vector<ncclComm_t> comms(devices.size());
  for (int rank = 0; rank < ranks; ++rank) devices[static_cast<size_t>(rank)].open(rank, ranks);
  NCCL(ncclCommInitAll(comms.data(), ranks, nullptr));

  for (size_t count : {size_t{2}, size_t{16} << 10, kMost}) {
    NCCL(ncclGroupStart());
    for (size_t rank = 0; rank < comms.size(); ++rank)
      NCCL(ncclAllReduce(devices[rank].in, devices[rank].out, count, ncclFloat, ncclSum, comms[rank],
                         devices[rank].stream));
    NCCL(ncclGroupEnd());
  }
  for (const Device& device : devices) device.wait();
  for (ncclComm_t comm : comms) NCCL(ncclCommDestroy(comm));
}
