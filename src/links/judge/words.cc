// SPDX-License-Identifier: Apache-2.0
// Findings name a GPU by its number and its address: numbers are what people type, and addresses are the same
// for NVML and the kernel. Words for reasons are of the bits that mean trouble. A clock that is low for want
// of work, or at its power cap, is no trouble.
#include "links/judge/words.h"

#include "base/text/units.h"

namespace lockstep::links {

std::string device_words(const Machine& machine, const std::string& pci) {
  for (const Gpu& gpu : machine.gpus)
    if (gpu.pci == pci) return "GPU " + std::to_string(gpu.index) + " (" + pci + ")";
  for (const Nic& nic : machine.nics)
    // lspci knows a card by its address alone.
    if (nic.pci == pci) return nic.name == pci ? "network card " + pci : nic.name + " (" + pci + ")";
  return pci;
}

std::string place_words(const Machine& machine, const std::string& place) {
  if (place == "host") return "host memory";
  if (place.starts_with("host:")) return "host memory of node " + place.substr(5);
  for (const Gpu& gpu : machine.gpus)
    if (gpu.pci == place) return "GPU " + std::to_string(gpu.index);
  return place;
}

std::string link_words(const PciLink& link) {
  return (link.gigatransfers ? format_decimal(*link.gigatransfers, 1) + " GT/s" : "an unknown speed") +
         (link.width ? " x" + std::to_string(*link.width) : "");
}

std::string throttle_words(uint64_t reasons) {
  constexpr std::pair<uint64_t, const char*> kReasons[] = {{0x8, "hardware slowdown"},
                                                           {0x20, "software thermal limit"},
                                                           {0x40, "hardware thermal limit"},
                                                           {0x80, "external power brake"}};
  std::string words;
  for (const auto& [bit, word] : kReasons)
    if (reasons & bit) words += (words.empty() ? "" : ", ") + std::string(word);
  return words;
}

analysis::Finding& add(std::vector<analysis::Finding>& findings, analysis::FindingId id,
                       std::string statement, const std::string& host, std::string advice) {
  analysis::Finding& finding = findings.emplace_back(id);
  finding.statement = std::move(statement);
  if (!host.empty()) finding.hosts = {host};
  finding.advice = std::move(advice);
  finding.sources = {"the host's links"};
  return finding;
}

}  // namespace lockstep::links
