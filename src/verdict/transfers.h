// SPDX-License-Identifier: Apache-2.0
// Findings about transfers, as who sets a host's links beside them asks.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "analysis/finding.h"

namespace lockstep::verdict {

inline bool is_about_transfers(const analysis::Finding& finding) {
  using enum analysis::FindingClass;
  const analysis::FindingClass of = class_of(finding.id);
  // Copies of the program's own memory wait for no link.
  return finding.severity > analysis::Severity::kNote &&
         finding.id != analysis::FindingId::kSlowLinkPageable &&
         (of == kSlowLink || of == kSlowNic || of == kStuckInNetwork || of == kTransportError);
}

inline bool is_about_whole_hosts(const analysis::Finding& finding) {
  return finding.id == analysis::FindingId::kSlowNicHost ||
         finding.id == analysis::FindingId::kSlowLinkHosts || finding.ranks.empty();
}

inline bool is_within_host(const analysis::Finding& finding) {
  return finding.id == analysis::FindingId::kSlowLinkIntraHost;
}

inline bool is_on(const analysis::Finding& finding, const std::string& host) {
  return std::find(finding.hosts.begin(), finding.hosts.end(), host) != finding.hosts.end();
}

// "00000000:1B:00.0" -> "0000:1b:00.0"
inline std::string kernel_address(std::string_view pci) {
  std::string text(pci.substr(pci.size() > 12 ? pci.size() - 12 : 0));
  for (char& c : text)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Whether a text has this word, not as a part of a longer one. One that ends in ':' may go on.
inline bool has_word(std::string_view text, std::string_view word) {
  const auto is_letter = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_letter(text[at - 1])) &&
        (end == text.size() || word.ends_with(':') || !is_letter(text[end])))
      return true;
  }
  return false;
}

inline bool mentions(const analysis::Finding& finding, std::string_view word) {
  return has_word(finding.statement, word) ||
         std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [word](const std::string& line) { return has_word(line, word); });
}

// "mlx5_2/1", as NCCL writes it: "mlx5_2:1".
inline bool names_port(const analysis::Finding& finding, std::string device) {
  std::replace(device.begin(), device.end(), '/', ':');
  return mentions(finding, device);
}

}  // namespace lockstep::verdict
