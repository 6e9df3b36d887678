// SPDX-License-Identifier: Apache-2.0
// Rows of the threads of one process, shared by its files: one per (kernel thread id, name, pthread_self()).
#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace lockstep::readers::native {

// Rows are numbers in `trace.threads` and stay. A thread that several files of the process name alike has one
// row.
class ThreadRows {
 public:
  ThreadRows(uint32_t process, model::Trace& trace) : process_(process), trace_(trace) {}
  // The row of a thread, added when it is asked for first. `pthread` 0: the file does not say.
  uint32_t row(int64_t tid, model::StringId name, uint64_t pthread) {
    auto [at, added] = rows_.try_emplace({tid, name, pthread}, model::kNoRow);
    if (added) {
      at->second = trace_.threads.append({.process = process_, .tid = tid, .name = name, .pthread = pthread});
    }
    return at->second;
  }
  // The thread is there since `since_ns`.
  void own(int64_t tid, model::StringId name, uint64_t pthread, int64_t since_ns) {
    if (pthread == 0) return;
    const uint32_t thread = row(tid, name, pthread);
    since_[{static_cast<uint32_t>(pthread), since_ns}] = thread;
    tids_since_[{static_cast<uint32_t>(tid), since_ns}] = thread;
  }
  // Whose pthread_self() ended in `caller` at a time. The value of a thread that has ended is given to later
  // ones, so it is the last that had begun by then; or the first of all, as a thread is known from its first
  // event on. kNoRow none.
  uint32_t of_caller(uint32_t caller, int64_t at_ns) const { return find(since_, caller, at_ns); }
  // As of_caller, by the kernel's number, which is given again too.
  uint32_t of_tid(uint32_t tid, int64_t at_ns) const { return find(tids_since_, tid, at_ns); }

  // The `caller` of this row of launches is a tid until all files of the process are read.
  void called_by_tid(uint32_t launch) { by_tid_.push_back(launch); }
  const std::vector<uint32_t>& launches_by_tid() const { return by_tid_; }

 private:
  using Since = std::map<std::pair<uint32_t, int64_t>, uint32_t>;  // (number, ns) -> row

  // The last entry of `number` at or before `at_ns`, else its first; the map's order makes each one search.
  static uint32_t find(const Since& since, uint32_t number, int64_t at_ns) {
    auto after = since.upper_bound({number, at_ns});
    if (after != since.begin() && std::prev(after)->first.first == number) return std::prev(after)->second;
    return after != since.end() && after->first.first == number ? after->second : model::kNoRow;
  }

  uint32_t process_;
  model::Trace& trace_;
  std::map<std::tuple<int64_t, model::StringId, uint64_t>, uint32_t> rows_;
  Since since_;                   // by the low half of pthread_self()
  Since tids_since_;              // by tid
  std::vector<uint32_t> by_tid_;  // rows of launches
};

}  // namespace lockstep::readers::native
