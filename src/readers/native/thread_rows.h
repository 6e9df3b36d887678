// SPDX-License-Identifier: Apache-2.0
// Rows of the threads of one process, shared by its files: one per (kernel thread id, name).
#pragma once
#include <cstdint>
#include <map>
#include <utility>

#include "model/trace.h"

namespace lockstep::readers::native {

class ThreadRows {
 public:
  ThreadRows(uint32_t process, model::Trace& trace) : process_(process), trace_(trace) {}
  uint32_t row(int64_t tid, model::StringId name) {
    auto [at, added] = rows_.try_emplace({tid, name}, model::kNoRow);
    if (added) at->second = trace_.threads.append({.process = process_, .tid = tid, .name = name});
    return at->second;
  }

 private:
  uint32_t process_;
  model::Trace& trace_;
  std::map<std::pair<int64_t, model::StringId>, uint32_t> rows_;
};

}  // namespace lockstep::readers::native
