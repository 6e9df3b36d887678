// SPDX-License-Identifier: Apache-2.0
// What one process contributes to a Job, made from its trace alone, so that several can be made at once.
// Texts, signatures and members are numbered in the part; Join gives them their numbers in the job.
#pragma once
#include <vector>

#include "model/job.h"
#include "model/trace.h"

namespace lockstep::job::gather {

struct ProcessPart {
  model::StringPool strings;
  model::JobProcess process;
  std::vector<model::Signature> signatures;
  struct Comm {  // row of the trace's comms; its member is the row of `members` with the same number
    uint64_t comm_id = 0;
    model::StringId name = 0, members = 0;  // members: declared groups
    int32_t ranks = -1, nodes = -1;
    bool declared = false;
    uint64_t context = 0;
  };
  std::vector<Comm> comms;
  std::vector<model::Member> members;
  // Communicators of other processes whose network this one drives (PXN). Network sums and open steps name
  // the n-th as member number members.size() + n.
  struct Foreign {
    int64_t pid = 0;
    uint64_t context = 0;
    uint64_t proxy_ops = 0;
  };
  std::vector<Foreign> foreign;
  model::LossTable losses;
};

// Uses the trace up, which holds one process. Several may run side by side.
ProcessPart make_part(model::Trace&& trace);

}  // namespace lockstep::job::gather
