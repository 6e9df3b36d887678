// SPDX-License-Identifier: Apache-2.0
// A healthy host of 8 GPUs and 8 network cards, two of each below a PCI switch, 4 switches on 2 NUMA nodes:
// what tests change one thing of.
#pragma once
#include "links/record.h"

namespace lockstep::links::testing {

std::string gpu_address(int gpu);  // 0000:03:00.0, ...
std::string nic_address(int nic);
std::string bridge_address(int nic);  // the switch's port above a network card
HostFiles healthy_files();
GpuFacts healthy_gpus();
// Every pair, round and host memory, all as NVLink 4 and PCIe 5 have them.
Traffic healthy_traffic();
LinksRecord healthy_record();
void set(HostFiles& files, const std::string& path, std::string text);
// Configuration space whose ACS control is `control`.
std::string configuration(uint16_t control);

}  // namespace lockstep::links::testing
