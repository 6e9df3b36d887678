// SPDX-License-Identifier: Apache-2.0
// Trouble that people only tell of (readers/nccl_log/symptoms.h): what, where they say so, and what to
// collect.
#pragma once
#include <optional>
#include <string_view>

#include "readers/nccl_log/log_model.h"

namespace lockstep::analysis::log_rules {

struct DescribedSymptom {
  std::string_view what, advice;  // "a hang"; of static storage
  const readers::nccl_log::Evidence* where = nullptr;
  std::string_view text = {};  // of that line, without the marks of a title
};
// Of the first file in which somebody does, understood or not. The model must live as long.
std::optional<DescribedSymptom> first_symptom(const readers::nccl_log::LogModel& model);

}  // namespace lockstep::analysis::log_rules
