// SPDX-License-Identifier: Apache-2.0
// As much of CUDA's run time as the examples call, on host memory: nothing computes.
#pragma once
#include <cstdlib>
#include <cstring>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
using cudaStream_t = void*;

inline const char* cudaGetErrorString(cudaError_t) { return "error"; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 2, cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = std::malloc(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return std::memset(memory, value, bytes), cudaSuccess;
}
