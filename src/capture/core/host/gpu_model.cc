// SPDX-License-Identifier: Apache-2.0
// Two places give the model without a library: NVIDIA's driver by name under /proc, the kernel by PCI ids
// under /sys. The address becomes part of both paths, so one with other characters than an address has is
// refused.
#include "capture/core/host/gpu_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/small_file.h"

namespace lockstep::capture {
namespace {

struct Text {
  char text[1024];
};

Text read_text(const char* path) {
  Text file;
  file.text[segment::read_small_file(path, file.text, sizeof file.text - 1)] = 0;
  return file;
}

// CUDA writes capitals, the kernel's folders have none. False if it is no address: it becomes part of a path.
bool kernel_address(const char* pci, char (&address)[16]) {
  size_t length = strnlen(pci, sizeof address);
  if (length == 0 || length == sizeof address) return false;
  for (size_t i = 0; i <= length; ++i) {
    char c = pci[i];
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    if (c != 0 && strchr("0123456789abcdef:.", c) == nullptr) return false;
    address[i] = c;
  }
  return strchr(address, ':') != nullptr;
}

void read_from_driver(const char* root, const char* address, GpuModel* model) {
  char path[512];
  snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus/%s/information", root, address);
  const Text file = read_text(path);
  const char* at = strstr(file.text, "Model:");
  if (at == nullptr) return;
  at += strlen("Model:");
  at += strspn(at, " \t");
  size_t length = strcspn(at, "\n");
  if (length >= sizeof model->text) length = sizeof model->text - 1;
  memcpy(model->text, at, length);
}

unsigned long read_id(const char* root, const char* address, const char* name) {
  char path[512];
  snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/%s", root, address, name);
  return strtoul(read_text(path).text, nullptr, 16) & 0xffff;
}

}  // namespace

GpuModel read_gpu_model(const char* pci, const char* root) {
  GpuModel model{};
  char address[16];
  if (!kernel_address(pci, address)) return model;
  read_from_driver(root, address, &model);
  if (model.text[0] != 0) return model;
  const unsigned long vendor = read_id(root, address, "vendor"), device = read_id(root, address, "device");
  if (vendor != 0 && device != 0) snprintf(model.text, sizeof model.text, "PCI %04lx:%04lx", vendor, device);
  return model;
}

}  // namespace lockstep::capture
