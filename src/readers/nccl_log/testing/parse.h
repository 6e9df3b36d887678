// SPDX-License-Identifier: Apache-2.0
// A log's text as a model, for tests.
#pragma once
#include <string_view>

#include "readers/nccl_log/log_parser.h"

namespace lockstep::readers::nccl_log {

// As one file, "a.log", that came in one piece.
inline LogModel parse(std::string_view text) {
  LogParser parser;
  parser.begin_file("a.log");
  parser.feed(text);
  parser.end_file();
  return parser.take();
}

// The fact of this kind; null if there is none, or more than one.
inline const Fact* only(const LogModel& model, LineKind kind) {
  return model.of(kind).size() == 1 ? &model.facts[model.of(kind)[0]] : nullptr;
}

}  // namespace lockstep::readers::nccl_log
