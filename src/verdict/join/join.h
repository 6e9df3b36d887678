// SPDX-License-Identifier: Apache-2.0
// One verdict out of several kinds of evidence of one job: capture files, Flight Recorder dumps, logs. Each
// kind is judged for itself; here findings about the same trouble become one that cites them all, what one
// kind cannot tell is resolved by another that can, and kinds that contradict each other are named.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "model/job.h"

namespace lockstep::verdict::join {

// What evidence spans, ns since the Unix epoch on its hosts' clocks; 0 unknown.
struct TimeSpan {
  int64_t first_ns = 0, last_ns = 0;
  int64_t zone_ns = 0;  // it may be off by so much: a local time, whose zone is not said
};
// How far apart they are, by all that clocks and zones leave open; 0: they may overlap, or a time is unknown.
int64_t gap_ns(const TimeSpan& a, const TimeSpan& b);
// Whether both may be of one run: they overlap in time, as far as that is known and clocks go.
inline bool same_time(const TimeSpan& a, const TimeSpan& b) { return gap_ns(a, b) == 0; }

// What one kind of evidence says.
struct EvidenceSource {
  std::string source;                    // as people call it: "Flight Recorder dumps"
  const model::Job* job = nullptr;       // matched; nullptr: it holds no operations
  std::map<int32_t, std::string> hosts;  // of the ranks that it mentions; a name may be empty
  TimeSpan span;
  std::vector<analysis::Finding> findings;
};

// A communicator as two kinds of evidence know it.
struct CommLink {
  enum class By : uint8_t {
    kId,          // both say NCCL's id
    kName,        // both say PyTorch's name of the group, and its members where that name is of several
    kMembers,     // no other communicator of either has these ranks
    kOperations,  // several have these ranks; the operations of these two agree best
  } by = By::kId;
  size_t a = 0, b = 0;                  // sources, a < b
  uint32_t a_comm = 0, b_comm = 0;      // rows of their jobs' comms
  uint64_t agreeing = 0, compared = 0;  // operations at the same place, function against function
};
std::string_view text(CommLink::By by);  // "id", "name", "members", "operations"

// links.cc: the communicators that jobs of one time have in common, where that is known. One for each pair of
// jobs and communicator.
std::vector<CommLink> link_comms(const std::vector<EvidenceSource>& sources);

// Whether two communicators of two jobs may be one: as many ranks, and nobody in another place, as far as
// that is known.
bool may_be_one(const model::Job& a, uint32_t a_comm, const model::Job& b, uint32_t b_comm);

struct Joined {
  analysis::Diagnosis diagnosis;
  std::vector<CommLink> links;
};
// `sources`: the most trusted first. Finding::sources says which of them a finding rests on.
Joined join(std::vector<EvidenceSource> sources);

}  // namespace lockstep::verdict::join
