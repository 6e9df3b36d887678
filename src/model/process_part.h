// SPDX-License-Identifier: Apache-2.0
// What one process contributes to a Job, made from its trace alone, so that several can be made at once.
// Texts, signatures and members are numbered in the part; job/gather gives them their numbers in the job.
#pragma once
#include <memory>
#include <vector>

#include "model/job.h"
#include "model/trace.h"

namespace lockstep::model {

struct ProcessPart {
  StringPool strings;
  JobProcess process;
  std::vector<Signature> signatures;
  struct Comm {  // row of the trace's comms; its member is the row of `members` with the same number
    uint64_t comm_id = 0;
    StringId name = 0, members = 0;  // members: declared groups
    int32_t ranks = -1, nodes = -1;
    bool declared = false;
    uint64_t context = 0;
  };
  std::vector<Comm> comms;
  std::vector<Member> members;
  // Communicators of other processes whose network this one drives (PXN). Network sums and open steps name
  // the n-th as member number members.size() + n.
  struct Foreign {
    int64_t pid = 0;
    uint64_t context = 0;
    // How many of its network operations this process did.
    uint64_t proxy_ops = 0;
  };
  std::vector<Foreign> foreign;
  LossTable losses;
};

// A running process as its host saw it last.
struct FollowedProcess {
  // Its newest operations (job/gather/newest_part.h); unchanged while the pointer is.
  std::shared_ptr<const ProcessPart> part;
  int64_t heartbeat_ns = 0;  // until when that is all that it did, on the clock of its times
  bool closed = false;
  Liveness liveness = Liveness::kUnknown;
  bool beats = false;
  int64_t seen_ns = 0;  // real time of the host that looked
};

}  // namespace lockstep::model
