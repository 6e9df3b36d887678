// SPDX-License-Identifier: Apache-2.0
// What every program here needs: checked calls, a rank's device with stream and buffers, and a process a
// rank. A failed call ends the process with one line on stderr and exit code 1.
#pragma once
#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

inline void require(bool good, const char* call, const char* error) {
  if (good) return;
  std::fprintf(stderr, "%s: %s\n", call, error);
  _exit(1);
}
#define CUDA(call)                                                     \
  do {                                                                 \
    const cudaError_t status = (call);                                 \
    require(status == cudaSuccess, #call, cudaGetErrorString(status)); \
  } while (0)
#define NCCL(call)                                                     \
  do {                                                                 \
    const ncclResult_t status = (call);                                \
    require(status == ncclSuccess, #call, ncclGetErrorString(status)); \
  } while (0)

constexpr size_t kMost = size_t{1} << 20;  // floats in a buffer

// One GPU of this process.
struct Device {
  int number = 0;
  cudaStream_t stream{};
  float *in{}, *out{};

  void open(int device, int ranks) {
    number = device;
    CUDA(cudaSetDevice(number));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc(reinterpret_cast<void**>(&in), kMost * sizeof(float)));
    CUDA(cudaMalloc(reinterpret_cast<void**>(&out), kMost * sizeof(float) * static_cast<size_t>(ranks)));
    CUDA(cudaMemset(in, 0, kMost * sizeof(float)));
  }
  void wait() const {
    CUDA(cudaSetDevice(number));
    CUDA(cudaStreamSynchronize(stream));
  }
};

// The number of GPUs to use: the program's argument, else all.
inline int gpus_of(int argc, char** argv) {
  if (argc > 1) return std::atoi(argv[1]);
  int count = 0;
  CUDA(cudaGetDeviceCount(&count));
  return count;
}

// Forks a process a rank, before anything of CUDA or NCCL has run, with the variables that torchrun sets.
// `body` gets NCCL's id from rank 0. 0 if every rank ended with 0.
template <class Body>
int run_ranks(int ranks, Body body) {
  struct Shared {
    ncclUniqueId id;
    std::atomic<int> is_there;
  };
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap", "no memory");
  auto* shared = static_cast<Shared*>(memory);
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() != 0) continue;
    setenv("RANK", std::to_string(rank).c_str(), 1);
    setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
    setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
    // PRETEND_HOSTS=2: the first half of the ranks says that it is on another host than the second; NCCL then
    // uses its network.
    if (const char* hosts = std::getenv("PRETEND_HOSTS"))
      setenv("NCCL_HOSTID", ("host" + std::to_string(rank * std::atoi(hosts) / ranks)).c_str(), 1);
    if (rank == 0) {
      NCCL(ncclGetUniqueId(&shared->id));
      shared->is_there.store(1);
    }
    while (shared->is_there.load() == 0) usleep(100);
    body(rank, shared->id);
    std::exit(0);
  }
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  return failed != 0;
}
