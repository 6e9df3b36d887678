// SPDX-License-Identifier: Apache-2.0
// How long a rank worked between its sends and receives. A stage of a pipeline works from a receive to a
// send, where no collective compares it with anybody; when the next one comes, its whole pipeline has waited
// for it and comes late with it. Work can still be compared with that of the ranks that have the same part in
// other pipelines: the same stage.
//
// A segment is the GPU's time that leads up to a send or receive. The collective that is called next has the
// sum of the segments since the collective before it. Not all of a segment is seen: a send goes on beside the
// work, and what comes after it may wait for it when the work is long done. So the sum has two bounds:
//
//   least   each segment since the end of whatever operation was the last to end, and since its launch
//   most    each segment since the end of the last receive or collective: waits for sends are in it
//
// Who worked longer than others has a `least` above their `most`. A stage that only waited for another has
// not: what it waited for ended in a receive.
//
// Work may go on beside the collective that a sum begins with. What went on beside it is in neither bound:
// the longer a rank had to wait in it, the less of its work is seen.
//
//   beside  how long that collective was on in what would else be the sum's first segment
#pragma once
#include <cstdint>
#include <vector>

#include "analysis/straggler/lateness/exclusive_times.h"
#include "model/job.h"

namespace lockstep::analysis::straggler {

// Fills ExclusiveTimes::least_segments, most_segments, beside_segments and stage from its other times and
// `ends`, by position in JobOps: ns on the clock of these times, < 1 where not known or not ended. Leaves
// them alone if the process neither sends nor receives.
void add_compute_segments(const model::Job& job, const model::JobProcess& process,
                          const std::vector<int64_t>& ends, ExclusiveTimes& times);

// Who sends to and receives from all members, itself included, exchanges all with all: every rank has the
// same part, and leaves once the last has come.
bool exchanges_with_all(const model::Job& job, const model::Member& member);

}  // namespace lockstep::analysis::straggler
