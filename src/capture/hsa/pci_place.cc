// SPDX-License-Identifier: Apache-2.0
// The kernel driver lists all GPUs of the host under /sys, whatever an environment hides of them.
#include "capture/hsa/pci_place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/small_file.h"

namespace lockstep::capture::hsa {
namespace {

constexpr char kTopology[] = "/sys/class/kfd/kfd/topology/nodes";

uint64_t property(const char* text, const char* name) {
  const size_t length = strlen(name);
  for (const char* line = text; line != nullptr && *line != 0; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, name, length) == 0 && line[length] == ' ') return strtoull(line + length, nullptr, 10);
  }
  return 0;
}

// All nodes are read anew for each GPU: some hundred small files in all.
int32_t place_on_host(uint64_t domain, uint64_t bdf) {
  DIR* folder = opendir(kTopology);
  if (folder == nullptr) return -1;
  int32_t before = 0;
  bool is_there = false;
  while (const dirent* entry = readdir(folder)) {
    char path[512], text[4096];
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    snprintf(path, sizeof path, "%s/%s/properties", kTopology, entry->d_name);
    text[segment::read_small_file(path, text, sizeof text - 1)] = 0;
    // Processors have nodes, too; they have no SIMD units.
    if (property(text, "simd_count") == 0) continue;
    const uint64_t there = property(text, "domain") << 32 | property(text, "location_id");
    is_there |= there == (domain << 32 | bdf);
    before += there < (domain << 32 | bdf);
  }
  closedir(folder);
  return is_there ? before : -1;
}

}  // namespace

void set_address(format::GpuAgentDef* def, uint32_t domain, uint32_t bdf) {
  snprintf(def->pci, sizeof def->pci, "%04x:%02x:%02x.%x", domain & 0xffff, bdf >> 8 & 0xff, bdf >> 3 & 0x1f,
           bdf & 7);
  def->place = place_on_host(domain, bdf);
}

}  // namespace lockstep::capture::hsa
