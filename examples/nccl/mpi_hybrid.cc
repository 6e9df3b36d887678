// SPDX-License-Identifier: Apache-2.0
// Several processes with several GPUs each, started by MPI: process p has the GPUs [p * D, (p + 1) * D) of
// its host's, or all of its host where each host has one process. MPI gives NCCL's id to all; after that NCCL
// communicates alone.
//   mpicxx -I$NCCL/include mpi_hybrid.cc -lnccl -lcudart -pthread -o mpi_hybrid
//   lockstep trace -o trace.db mpirun -n 2 ./mpi_hybrid 4          one thread calls for its 4 GPUs, in groups
//   lockstep trace -o trace.db mpirun -n 2 ./mpi_hybrid 4 threads  a thread for each
#include <mpi.h>

#include <cstring>
#include <thread>
#include <vector>

#include "example.h"

namespace {

struct Place {
  int process = 0, processes = 1, local = 0;
};

Place place_of_process() {
  Place place;
  MPI_Comm_rank(MPI_COMM_WORLD, &place.process);
  MPI_Comm_size(MPI_COMM_WORLD, &place.processes);
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_rank(host, &place.local);
  MPI_Comm_free(&host);
  return place;
}

void all_reduce(const std::vector<Device>& devices, const std::vector<ncclComm_t>& comms, size_t first,
                size_t last) {
  for (int round = 0; round < 4; ++round) {
    NCCL(ncclGroupStart());
    for (size_t i = first; i < last; ++i)
      NCCL(ncclAllReduce(devices[i].in, devices[i].out, kMost, ncclFloat, ncclSum, comms[i],
                         devices[i].stream));
    NCCL(ncclGroupEnd());
  }
  for (size_t i = first; i < last; ++i) devices[i].wait();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Place place = place_of_process();
  const int gpus = gpus_of(argc, argv), ranks = gpus * place.processes;
  const bool threads = argc > 2 && std::strcmp(argv[2], "threads") == 0;
  ncclUniqueId id;
  if (place.process == 0) NCCL(ncclGetUniqueId(&id));
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  const auto count = static_cast<size_t>(gpus);
  std::vector<Device> devices(count);
  std::vector<ncclComm_t> comms(count);
  for (int i = 0; i < gpus; ++i) devices[static_cast<size_t>(i)].open(place.local * gpus + i, ranks);
  // A communicator for each GPU; in a group, as each waits for all.
  NCCL(ncclGroupStart());
  for (int i = 0; i < gpus; ++i) {
    const auto at = static_cast<size_t>(i);
    CUDA(cudaSetDevice(devices[at].number));
    NCCL(ncclCommInitRank(&comms[at], ranks, id, place.process * gpus + i));
  }
  NCCL(ncclGroupEnd());
  if (threads) {
    std::vector<std::thread> callers;
    for (size_t i = 0; i < count; ++i)
      callers.emplace_back([&, i] {
        CUDA(cudaSetDevice(devices[i].number));
        all_reduce(devices, comms, i, i + 1);
      });
    for (std::thread& caller : callers) caller.join();
  } else {
    all_reduce(devices, comms, 0, count);
  }
  for (const ncclComm_t comm : comms) NCCL(ncclCommDestroy(comm));
  MPI_Finalize();
  return 0;
}
