// SPDX-License-Identifier: Apache-2.0
// What the events of an archive refer to: texts, regions, the tree of hosts, processes and locations, who is
// which rank, and the communicators. Collected while processes are written, and written at the end, when all
// of it is known.
//
// A *participant* is one member of communicators: a process with one of its devices, as NCCL counts ranks.
// Its number is the index into the archive's list of ranks, which is in the order of the job's ranks once all
// are known.
#pragma once
#include <otf2/otf2.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/trace.h"

namespace lockstep::exporters::otf2 {

class Archive;

// What records of operations say beside the fields that OTF2 has.
enum class Attribute : OTF2_AttributeRef {
#define ATTRIBUTE(id, type, name, description) id,
#include "exporters/otf2/attributes.def"
#undef ATTRIBUTE
};

// A text made fit for OTF2: UTF-8 without NUL, at most kMaxText bytes.
inline constexpr size_t kMaxText = 4096;
std::string fit_text(std::string_view text);

class Definitions {
 public:
  Definitions();

  OTF2_StringRef text(std::string_view text);
  uint64_t cut_texts() const { return cut_texts_; }  // longer than kMaxText
  OTF2_RegionRef region(OTF2_StringRef name, OTF2_RegionRole role, OTF2_Paradigm paradigm);

  // The node of a host: equal (name, boot id) are one.
  OTF2_SystemTreeNodeRef host(std::string_view name, std::string_view boot_id);
  OTF2_LocationGroupRef process(std::string_view name, OTF2_SystemTreeNodeRef host);
  OTF2_LocationGroupRef device(std::string_view name, OTF2_LocationGroupRef process);
  void property(OTF2_LocationGroupRef group, std::string_view name,
                std::string_view value);  // empty: left out
  OTF2_LocationRef location(std::string_view name, OTF2_LocationType type, OTF2_LocationGroupRef group);
  void set_events(OTF2_LocationRef location, uint64_t events) { locations_[location].events = events; }

  // `order`: the global rank, and what tells the devices of one process apart.
  uint32_t participant(std::pair<int64_t, int64_t> order, OTF2_LocationRef location);
  // The communicator of a row of `trace.comms`. Rows of one id and size in several processes are one
  // communicator.
  OTF2_CommRef comm(const model::Trace& trace, uint32_t row);
  // The participant is that rank of the communicator.
  void join(OTF2_CommRef comm, int32_t rank, uint32_t participant);
  // Members of it; 0 unknown: its ranks say nothing.
  uint32_t comm_size(OTF2_CommRef comm) const { return comms_[comm].size; }

  // A time that is in the archive.
  void seen(int64_t time_ns) {
    const auto time = static_cast<uint64_t>(time_ns);
    if (time < first_) first_ = time;
    if (time > last_) last_ = time;
  }
  uint64_t first_time() const { return first_ <= last_ ? first_ : 0; }

  // Adds locations, without events, for ranks of communicators that nobody recorded.
  void complete(Archive& archive);
  void write(Archive& archive, const std::string& run);
  // Members whose rank is unknown, or another member's; communicators too large to be written with all their
  // ranks.
  uint64_t misplaced_members() const { return misplaced_members_; }
  uint64_t large_comms() const { return large_comms_; }

 private:
  struct Region {
    OTF2_StringRef name;
    OTF2_RegionRole role;
    OTF2_Paradigm paradigm;
    auto operator<=>(const Region&) const = default;
  };
  struct Group {
    OTF2_StringRef name;
    OTF2_SystemTreeNodeRef host;
    OTF2_LocationGroupRef creator;
  };
  struct Property {
    OTF2_LocationGroupRef group;
    OTF2_StringRef name, value;
  };
  struct Location {
    OTF2_StringRef name;
    OTF2_LocationType type;
    OTF2_LocationGroupRef group;
    uint64_t events = 0;
  };
  struct Participant {
    std::pair<int64_t, int64_t> order;
    OTF2_LocationRef location;
  };
  struct Comm {
    OTF2_StringRef name;
    uint32_t size = 0;                    // 0 unknown: the known members
    std::map<int32_t, uint32_t> members;  // participants by rank
  };
  std::vector<uint64_t> group_members(const Comm& comm, const std::vector<uint32_t>& index_of) const;
  void write_texts(OTF2_GlobalDefWriter* writer) const;
  void write_tree(OTF2_GlobalDefWriter* writer) const;
  void write_communicators(OTF2_GlobalDefWriter* writer);

  std::unordered_map<std::string, OTF2_StringRef> text_refs_;
  std::vector<const std::string*> texts_;
  std::map<Region, OTF2_RegionRef> region_refs_;
  std::vector<Region> regions_;
  std::map<std::pair<std::string, std::string>, OTF2_SystemTreeNodeRef> host_refs_;
  std::vector<OTF2_StringRef> hosts_;
  std::vector<Group> groups_;
  std::vector<Property> properties_;
  std::vector<Location> locations_;
  std::vector<Participant> participants_;
  uint32_t recorded_ = 0;  // participants that were; behind them the ranks that were not
  std::map<std::pair<uint64_t, int32_t>, OTF2_CommRef> comm_refs_;
  std::vector<Comm> comms_;
  uint64_t first_ = UINT64_MAX, last_ = 0;
  uint64_t members_ = 0;  // of all communicators
  uint64_t cut_texts_ = 0, misplaced_members_ = 0, large_comms_ = 0;
};

}  // namespace lockstep::exporters::otf2
