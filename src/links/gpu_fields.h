// SPDX-License-Identifier: Apache-2.0
// The fields of GPU facts and of measurements by name, once: what writes and what reads a record both walk
// this list.
#pragma once
#include "links/gpu_facts.h"
#include "links/traffic/traffic.h"

namespace lockstep::links {

template <class Visitor>
void visit(GpuLink& link, Visitor&& field) {
  field("number", link.number);
  field("is_up", link.is_up);
  field("remote_pci", link.remote_pci);
  field("errors", link.errors);
}

template <class Visitor>
void visit(Gpu& gpu, Visitor&& field) {
  field("index", gpu.index);
  field("vendor", gpu.vendor);
  field("name", gpu.name);
  field("uuid", gpu.uuid);
  field("pci", gpu.pci);
  field("pcie_generation", gpu.pcie_generation);
  field("pcie_width", gpu.pcie_width);
  field("most_pcie_generation", gpu.most_pcie_generation);
  field("most_pcie_width", gpu.most_pcie_width);
  field("links", gpu.links);
  field("link_rate", gpu.link_rate);
  field("fabric_state", gpu.fabric_state);
  field("fabric_status", gpu.fabric_status);
  field("fabric_health", gpu.fabric_health);
  field("fabric_cluster", gpu.fabric_cluster);
  field("fabric_clique", gpu.fabric_clique);
  field("throttle_reasons", gpu.throttle_reasons);
  field("sm_clock_mhz", gpu.sm_clock_mhz);
  field("memory_clock_mhz", gpu.memory_clock_mhz);
  field("most_sm_clock_mhz", gpu.most_sm_clock_mhz);
  field("temperature_celsius", gpu.temperature_celsius);
  field("power_milliwatts", gpu.power_milliwatts);
  field("power_limit_milliwatts", gpu.power_limit_milliwatts);
  field("utilization_percent", gpu.utilization_percent);
  field("uncorrected_ecc", gpu.uncorrected_ecc);
  field("corrected_ecc", gpu.corrected_ecc);
  field("remapped_rows", gpu.remapped_rows);
  field("remap_failed", gpu.remap_failed);
  field("remap_pending", gpu.remap_pending);
  field("counters", gpu.counters);
  field("processes", gpu.processes);
  field("peer_status", gpu.peer_status);
  field("is_mig", gpu.is_mig);
  field("unanswered", gpu.unanswered);
}

template <class Visitor>
void visit(GpuFacts& facts, Visitor&& field) {
  field("library", facts.library);
  field("absent", facts.absent);
  field("driver", facts.driver);
  field("gpus", facts.gpus);
}

template <class Visitor>
void visit(Cell& cell, Visitor&& field) {
  field("kind", cell.kind);
  field("from", cell.from);
  field("to", cell.to);
  field("samples", cell.samples);
  field("again", cell.again);
  field("bytes", cell.bytes);
  field("round", cell.round);
}

template <class Visitor>
void visit(Traffic& traffic, Visitor&& field) {
  field("cells", traffic.cells);
  field("notes", traffic.notes);
  field("seconds", traffic.seconds);
  field("sent", traffic.sent);
  field("received", traffic.received);
}

}  // namespace lockstep::links
