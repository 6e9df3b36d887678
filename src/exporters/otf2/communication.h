// SPDX-License-Identifier: Apache-2.0
// The operations of one process as its ranks took part in them. Each rank (a device of the process) has a
// location of its own where they lie one after the other, from the begin to the end of the GPU's work, or of
// the host's call where no GPU times are known. Operations that overlap are spread over further locations, so
// that none lies within another.
//
// Sends and receives of one kernel, which begin and end together, are one region with all their messages:
// sent at its begin, received at its end. Collectives of one kernel follow each other, the first with all of
// the time.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "exporters/otf2/archive.h"
#include "exporters/otf2/definitions.h"
#include "model/run_numbers.h"
#include "model/trace.h"

namespace lockstep::exporters::otf2 {

// What could not be said, summed over the run.
struct Omitted {
  uint64_t without_time = 0;  // begin unknown: left out
  uint64_t cut_short = 0;     // drawn shorter, because too many overlapped
  uint64_t without_record =
      0;  // a region alone: no such collective in OTF2, or its communicator, root, peer or number is unknown
  uint64_t unfinished = 0;  // a region alone: it had not ended
};

class Communication {
 public:
  // `who`: the process, for names. `rank` < 0: unknown.
  Communication(const model::Trace& trace, int64_t number, const std::string& who,
                OTF2_LocationGroupRef process, Definitions& definitions);
  // Writes the locations; returns how many events they have.
  uint64_t write(Archive& archive, Omitted& omitted);

 private:
  struct Interval {
    int64_t start, end;
    uint32_t op, participant;
  };
  // Operations that are written in one go.
  struct Unit {
    int64_t start, end;
    uint32_t first, count;  // of intervals_
    uint32_t participant;   // of this process
    uint32_t lane;
  };
  struct Participant {
    int64_t device;  // run-wide number where it is known, below 0 else
    OTF2_LocationRef location;
    std::vector<OTF2_LocationRef> lanes;  // the first is `location`
  };
  enum class Form : uint8_t { kRegion, kCollective, kMessage };
  // What an operation's records have in common with others of the same communicator and shape.
  struct Words {
    Form form = Form::kRegion;
    bool is_send = false, is_rooted = false;
    OTF2_CollectiveOp op = 0;
    OTF2_RegionRef region = 0;
    OTF2_StringRef datatype = 0, algorithm = 0, protocol = 0;
    uint32_t root = OTF2_COLLECTIVE_ROOT_NONE;
  };

  uint32_t participant_of(int32_t device, int32_t gpu);
  void add_communicators();
  void add_intervals(Omitted& omitted);
  void number_messages();
  void make_units();
  void assign_lanes(Omitted& omitted);
  const Words& words(uint32_t op);
  Words make_words(uint32_t op);
  bool is_unfinished(uint32_t op) const;
  void write_messages(const Unit& unit, OTF2_EvtWriter* writer, Omitted& omitted);
  void write_operations(const Unit& unit, OTF2_EvtWriter* writer, Omitted& omitted);
  void describe(uint32_t op, const Words& words);

  const model::Trace& trace_;
  const int64_t number_;
  const std::string who_;
  const OTF2_LocationGroupRef process_;
  Definitions& definitions_;
  const model::OperationNumbers numbers_;
  std::vector<Participant> participants_;
  std::vector<uint32_t> comm_participant_;  // by row of comms
  std::vector<OTF2_CommRef> comm_refs_;     // by row of comms
  std::vector<uint32_t> tags_;              // by op: n-th message of the pair and direction; kNoTag
  std::vector<Interval> intervals_;
  std::vector<Unit> units_;
  std::unordered_map<uint64_t, Words> words_;
  std::vector<OTF2_StringRef> sources_;  // by GpuTimeSource
  OTF2_AttributeList* attributes_ = nullptr;
};

}  // namespace lockstep::exporters::otf2
