// SPDX-License-Identifier: Apache-2.0
// In what order a rank calls its operations, and so what it would have called next: a job repeats itself.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/job_state.h"

namespace lockstep::analysis::hang {

class CallOrder {
 public:
  CallOrder(const JobState& job_state, uint32_t actor);

  // How many calls after its newest one the rank would come to a collective of this communicator, or to a
  // send or receive (`pair`), if it went on as it did when it last called the same operations; nothing if it
  // never did.
  std::optional<uint32_t> until(uint32_t comm, bool pair) const;

  // An operation that the rank has called, or would have to call.
  struct Operation {
    uint32_t comm = 0;
    int64_t entered_ns = 0;  // 0: it has not called it
    bool pair = false;       // then: a send or receive
  };
  enum class Habit : uint8_t { kUnknown, kKept, kBroken };
  // Whether the rank, which came to `first` before `second`, had called such operations in that order
  // whenever it was where it called `first`: after the same calls.
  Habit habit(const Operation& first, const Operation& second) const;

 private:
  struct Call {
    int64_t entered_ns;
    uint32_t comm, signature;
    bool pair;
    bool same(const Call& other) const {
      return comm == other.comm && signature == other.signature && pair == other.pair;
    }
  };
  // A place in calls_ before which `alike` calls are those before another one.
  struct Likeness {
    size_t place = 0, alike = 0;
  };
  std::vector<Likeness> likenesses(size_t at) const;  // the newest first
  Habit order_at(size_t place, const Call& first, const Call* second, const Operation& wanted) const;
  const Call* find(const Operation& operation) const;
  std::vector<Call> calls_;
  size_t repeat_ = 0;  // in calls_: what followed the last time; calls_.size(): no such time
};

}  // namespace lockstep::analysis::hang
