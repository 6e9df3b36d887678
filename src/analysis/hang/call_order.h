// SPDX-License-Identifier: Apache-2.0
// In what order a rank calls its operations, and so what it would have called next: a job repeats itself.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/hang/scene.h"

namespace lockstep::analysis::hang {

class CallOrder {
 public:
  CallOrder(const Scene& scene, uint32_t actor);

  // How many calls after its newest one the rank would come to a collective of this communicator, or to a send or
  // receive (`pair`), if it went on as it did when it last called the same operations; nothing if it never did.
  std::optional<uint32_t> until(uint32_t comm, bool pair) const;

 private:
  struct Call {
    int64_t entered_ns;
    uint32_t comm, signature;
    bool pair;
    bool same(const Call& other) const {
      return comm == other.comm && signature == other.signature && pair == other.pair;
    }
  };
  std::vector<Call> calls_;
  size_t repeat_ = 0;  // in calls_: what followed the last time; calls_.size(): no such time
};

}  // namespace lockstep::analysis::hang
