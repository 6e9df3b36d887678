// SPDX-License-Identifier: Apache-2.0
// What kind of GPU is at a PCI address, as the kernel shows it; no library is asked. For init, not for the
// event path: it opens at most three files.
#pragma once

namespace lockstep::capture {

struct GpuModel {
  char text[64];  // "NVIDIA H200" as the driver says, else "PCI 10de:2335" (vendor and device); empty unknown
};
// `pci`: "0000:1b:00.0", digits of either case. `root` stands before /proc and /sys.
GpuModel read_gpu_model(const char* pci, const char* root = "");

}  // namespace lockstep::capture
