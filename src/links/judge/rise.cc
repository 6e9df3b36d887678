// SPDX-License-Identifier: Apache-2.0
// Adds up the steps of one counter instead of taking its last value minus its first: it may have been
// cleared, or have wrapped, in between. Moments at which it could not be read are passed over, and the next
// value is compared with the last one that was known.
#include "links/judge/rise.h"

#include "links/counters.h"

namespace lockstep::links {

Rise rise_of(const SampledCounter& counter) {
  Rise rise;
  const Sample* before = nullptr;
  for (const Sample& sample : counter.samples) {
    if (!sample.is_known) continue;
    if (before != nullptr) {
      const Increase increase = increase_of(counter.key.name, before->value, sample.value);
      rise.total += increase.amount;
      rise.resets += increase.was_reset;
      rise.wraps += increase.has_wrapped;
      rise.is_at_least = rise.is_at_least || increase.is_at_least;
      if (increase.amount > 0) rise.events.push_back({sample.ms, increase.amount});
    }
    before = &sample;
  }
  return rise;
}

}  // namespace lockstep::links
