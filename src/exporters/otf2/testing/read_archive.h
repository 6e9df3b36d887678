// SPDX-License-Identifier: Apache-2.0
// An OTF2 archive as libotf2's own reader sees it, for tests.
#pragma once
#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::exporters::otf2::testing {

struct ReadLocation {
  std::string name;
  OTF2_LocationType type = OTF2_LOCATION_TYPE_UNKNOWN;
  OTF2_LocationGroupRef group = 0;
  uint64_t announced = 0, events = 0;  // as its definition says, as there are
};
struct ReadGroup {
  std::string name;
  OTF2_LocationGroupType type = OTF2_LOCATION_GROUP_TYPE_UNKNOWN;
  OTF2_LocationGroupRef creator = OTF2_UNDEFINED_LOCATION_GROUP;
};
struct ReadComm {
  std::string name;
  std::vector<OTF2_LocationRef> members;  // by rank
};
struct ReadCollective {
  OTF2_LocationRef location;
  OTF2_CommRef comm;
  OTF2_CollectiveOp op;
  uint32_t root;
  uint64_t sent, received, begin, end;
};
struct ReadMessage {
  OTF2_LocationRef location;
  OTF2_CommRef comm;
  uint32_t peer, tag;
  uint64_t bytes, time;
  bool is_send;
};
struct ReadVisits {
  uint64_t count = 0, ns = 0;
};

struct ReadArchive {
  std::map<OTF2_LocationRef, ReadLocation> locations;
  std::map<OTF2_LocationGroupRef, ReadGroup> groups;
  std::vector<OTF2_LocationRef> ranks;  // of the list of ranks
  std::map<OTF2_CommRef, ReadComm> comms;
  std::vector<ReadCollective> collectives;
  std::vector<ReadMessage> messages;
  std::map<std::string, ReadVisits> host_regions,
      stream_regions;  // by name, on host threads and on GPU streams
  std::vector<std::string> markers;
  uint64_t first_time = 0, length = 0, events = 0;
  std::vector<std::string>
      problems;  // times that go back, regions left that were not entered, counts that differ
};
// `folder`: the archive's directory.
Result<ReadArchive> read_archive(const std::string& folder);

}  // namespace lockstep::exporters::otf2::testing
