// SPDX-License-Identifier: Apache-2.0
// Rows of the threads of one process, shared by its files: one per (kernel thread id, name, pthread_self()).
#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "model/trace.h"

namespace lockstep::readers::native {

class ThreadRows {
 public:
  ThreadRows(uint32_t process, model::Trace& trace) : process_(process), trace_(trace) {}
  uint32_t row(int64_t tid, model::StringId name, uint64_t pthread) {
    auto [at, added] = rows_.try_emplace({tid, name, pthread}, model::kNoRow);
    if (added) {
      at->second = trace_.threads.append({.process = process_, .tid = tid, .name = name, .pthread = pthread});
    }
    return at->second;
  }
  // The thread is there since `since_ns`.
  void own(int64_t tid, model::StringId name, uint64_t pthread, int64_t since_ns) {
    if (pthread != 0) since_[{static_cast<uint32_t>(pthread), since_ns}] = row(tid, name, pthread);
  }
  // Whose pthread_self() ended in `caller` at a time. The value of a thread that has ended is given to later ones, so
  // it is the last that had begun by then; or the first of all, as a thread is known from its first event on. kNoRow none.
  uint32_t of_caller(uint32_t caller, int64_t at_ns) const {
    auto after = since_.upper_bound({caller, at_ns});
    if (after != since_.begin() && std::prev(after)->first.first == caller) return std::prev(after)->second;
    return after != since_.end() && after->first.first == caller ? after->second : model::kNoRow;
  }

 private:
  uint32_t process_;
  model::Trace& trace_;
  std::map<std::tuple<int64_t, model::StringId, uint64_t>, uint32_t> rows_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> since_;  // (low half of pthread_self(), ns) -> row
};

}  // namespace lockstep::readers::native
