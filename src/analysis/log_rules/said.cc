// SPDX-License-Identifier: Apache-2.0
// Conditions of SAID rows.
#include "analysis/log_rules/rules.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::analysis::log_rules {
namespace {

using readers::nccl_log::to_double;
using readers::nccl_log::to_int;

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool any_value_has(const Fact& fact, std::string_view part) {
  for (const std::string& value : fact.values) {
    if (has(value, part)) return true;
  }
  return false;
}

// 12 of "12" or of "IBV_WC_RETRY_EXC_ERR(12)"; a peer's name may stand before it. -1: none.
int64_t completion_status(const Fact& fact) {
  for (const std::string& value : fact.values) {
    const size_t open = value.ends_with(')') ? value.rfind('(') + 1 : 0;
    const std::string_view digits =
        std::string_view(value).substr(open, value.size() - open - (open != 0 ? 1 : 0));
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
      return to_int(digits);
  }
  return -1;
}

bool is_cuda_memory_error(const Fact& fact) {
  return fact.value(0).starts_with("2 ") || has(fact.value(0), "out of memory");
}

}  // namespace

bool any(const View&, const Fact&) { return true; }
bool warned(const View&, const Fact& fact) { return fact.is_warning; }
bool port_error(const View&, const Fact& fact) { return any_value_has(fact, "port error"); }
bool fabric_unfinished(const View&, const Fact& fact) { return fact.value(3) != "3"; }
bool out_of_memory(const View& view, const Fact& fact) {
  return warned(view, fact) && any_value_has(fact, "Cannot allocate memory");
}
bool other_verbs(const View& view, const Fact& fact) {
  return warned(view, fact) && !out_of_memory(view, fact);
}
bool cuda_out_of_memory(const View& view, const Fact& fact) {
  return warned(view, fact) && is_cuda_memory_error(fact);
}
bool cuda_error(const View& view, const Fact& fact) {
  return warned(view, fact) && !is_cuda_memory_error(fact);
}
bool one_core(const View&, const Fact& fact) {
  const std::string cores = fact.value(1);
  return !cores.empty() && cores.find_first_not_of("0123456789") == std::string::npos && cores.size() <= 4;
}
bool is_on(const View&, const Fact& fact) { return fact.value(0) == "On"; }
// Without cards the plugins that NCCL brings along fail in every log; what is used instead is told elsewhere.
bool not_built_in(const View&, const Fact& fact) {
  return fact.value(0) != "IB" && fact.value(0) != "Socket";
}
bool pair_disabled(const View&, const Fact& fact) {
  return fact.value(0) == "Disabled" || fact.value(1) == "Disabled";
}

bool has_nvswitch(const View& view, const Fact& fact) {
  constexpr double kHopperGbps = 300;  // of all NVLinks of a GPU: older ones have no multicast
  for (const Fact* link : view.facts(LineKind::kNvLink, fact.process)) {
    if (link->value(1).starts_with("NVS/") && to_double(link->value(0)) >= kHopperGbps) return true;
  }
  return false;
}

bool slower_than_any_slot(const View&, const Fact& fact) {
  constexpr double kSlowestGbps = 3;  // less than any GPU or card is put behind
  return fact.value(1).starts_with("GPU/") && to_double(fact.value(0)) < kSlowestGbps;
}

bool small_roce_mtu(const View&, const Fact& fact) {
  return fact.value(1) == "3" && fact.value(2).starts_with("GID");
}

bool access_error(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 4;
}
// "(34/34)": the last.
bool retries_spent(const View&, const Fact& fact) {
  const size_t values = fact.values.size();
  return values >= 4 && fact.value(values - 3) == fact.value(values - 2) &&
         to_int(fact.value(values - 2)) > 0;
}
bool retries_exceeded(const View& view, const Fact& fact) {
  return warned(view, fact) && completion_status(fact) == 12;
}
// 5 follows from an earlier error of the same connection.
bool other_error(const View& view, const Fact& fact) {
  const int64_t status = completion_status(fact);
  return warned(view, fact) && status != 4 && status != 5 && status != 12;
}

}  // namespace lockstep::analysis::log_rules
