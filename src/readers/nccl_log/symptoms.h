// SPDX-License-Identifier: Apache-2.0
// What people say of a job in sentences of their own, before, behind or instead of its log.
#pragma once
#include <optional>
#include <string_view>

#include "readers/nccl_log/log_model.h"

namespace lockstep::readers::nccl_log {

// What a sentence speaks of first. Nothing: of no trouble, that it did not happen, or it is no sentence but a
// line of a program. `is_title`: more is believed of a title than of what stands below it.
std::optional<Symptom> symptom_of(std::string_view text, bool is_title);

}  // namespace lockstep::readers::nccl_log
