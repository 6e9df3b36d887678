// SPDX-License-Identifier: Apache-2.0
// Collectives captured into a CUDA graph once and replayed: the host calls NCCL only while it captures.
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
    all_reduce();
    device.wait();

    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    CUDA(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; ++i) all_reduce();
    CUDA(cudaStreamEndCapture(device.stream, &graph));
    CUDA(cudaGraphInstantiate(&runnable, graph, 0));
    for (int i = 0; i < 4; ++i) CUDA(cudaGraphLaunch(runnable, device.stream));
    device.wait();

    all_reduce();
    device.wait();
    CUDA(cudaGraphExecDestroy(runnable));
    CUDA(cudaGraphDestroy(graph));
    NCCL(ncclCommDestroy(comm));
  });
}
