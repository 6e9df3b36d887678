// SPDX-License-Identifier: Apache-2.0
// Kernels with names that matter, for hosts B and C. They are loaded and launched, and never run.
#define KERNEL(name) \
  __kernel void name(__global ulong* first, ulong bytes) { first[0] = bytes; }
KERNEL(plain_compute)
KERNEL(ncclDevKernel_Generic_1)
KERNEL(rccl_main_kernel)
