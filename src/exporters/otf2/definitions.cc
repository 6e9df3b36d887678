// SPDX-License-Identifier: Apache-2.0
// Collects what the events of all processes name, because OTF2 has one list of definitions for the archive,
// written at its end. Numbers are given at first use; ranks of a communicator that nobody recorded get
// locations without events, as its group would otherwise be too small for its ranks.
#include "exporters/otf2/definitions.h"

#include <algorithm>

#include "base/hex.h"
#include "base/utf8.h"
#include "exporters/otf2/archive.h"

namespace lockstep::exporters::otf2 {
namespace {

constexpr OTF2_StringRef kEmpty = 0;
constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr uint32_t kMaxRanks = 1 << 18;  // of one communicator: its record fits into the library's buffer
constexpr uint64_t kMaxMembers = 1ull << 26;  // of all communicators
constexpr uint32_t kMaxAbsent =
    4096;  // locations for ranks that nobody recorded; further ranks share the last

}  // namespace

std::string fit_text(std::string_view text) {
  const bool is_long = text.size() > kMaxText;
  std::string fit = valid_utf8(is_long ? text.substr(0, kMaxText - 3) : text);
  if (is_long) fit += "...";
  // libotf2 takes C strings.
  std::replace(fit.begin(), fit.end(), '\0', '?');
  return fit;
}

// The empty text is number 0, which definitions name where they have nothing to say (kEmpty).
Definitions::Definitions() { text(""); }

OTF2_StringRef Definitions::text(std::string_view text) {
  cut_texts_ += text.size() > kMaxText;
  const auto [at, is_new] =
      text_refs_.try_emplace(fit_text(text), static_cast<OTF2_StringRef>(texts_.size()));
  // Keys of an unordered_map stay where they are when it grows.
  if (is_new) texts_.push_back(&at->first);
  return at->second;
}

OTF2_RegionRef Definitions::region(OTF2_StringRef name, OTF2_RegionRole role, OTF2_Paradigm paradigm) {
  const Region region{name, role, paradigm};
  const auto [at, is_new] = region_refs_.try_emplace(region, static_cast<OTF2_RegionRef>(regions_.size()));
  if (is_new) regions_.push_back(region);
  return at->second;
}

OTF2_SystemTreeNodeRef Definitions::host(std::string_view name, std::string_view boot_id) {
  // The machine is node 0.
  const auto [at, is_new] = host_refs_.try_emplace({std::string(name), std::string(boot_id)},
                                                   static_cast<OTF2_SystemTreeNodeRef>(hosts_.size() + 1));
  if (is_new) hosts_.push_back(text(name.empty() ? "unknown host" : name));
  return at->second;
}

OTF2_LocationGroupRef Definitions::process(std::string_view name, OTF2_SystemTreeNodeRef host) {
  groups_.push_back({text(name), host, OTF2_UNDEFINED_LOCATION_GROUP});
  return static_cast<OTF2_LocationGroupRef>(groups_.size() - 1);
}

OTF2_LocationGroupRef Definitions::device(std::string_view name, OTF2_LocationGroupRef process) {
  groups_.push_back({text(name), groups_[process].host, process});
  return static_cast<OTF2_LocationGroupRef>(groups_.size() - 1);
}

void Definitions::property(OTF2_LocationGroupRef group, std::string_view name, std::string_view value) {
  if (!value.empty()) properties_.push_back({group, text(name), text(value)});
}

OTF2_LocationRef Definitions::location(std::string_view name, OTF2_LocationType type,
                                       OTF2_LocationGroupRef group) {
  locations_.push_back({text(name), type, group});
  return locations_.size() - 1;
}

uint32_t Definitions::participant(std::pair<int64_t, int64_t> order, OTF2_LocationRef location) {
  participants_.push_back({order, location});
  return recorded_++;
}

OTF2_CommRef Definitions::comm(const model::Trace& trace, uint32_t row) {
  const uint64_t id = trace.comms.comm_id[row];
  const int32_t ranks = trace.comms.ranks[row];
  const auto next = static_cast<OTF2_CommRef>(comms_.size());
  // Communicators without an id cannot be matched across processes: each is one of its own.
  if (id != 0) {
    const auto [at, is_new] = comm_refs_.try_emplace({id, ranks}, next);
    if (!is_new) return at->second;
  }
  const std::string_view name = trace.strings[trace.comms.name[row]];
  auto size = static_cast<uint32_t>(std::max(ranks, 0));
  if (size > kMaxRanks || members_ + size > kMaxMembers) {
    size = 0;
    ++large_comms_;
  }
  members_ += size;
  comms_.push_back({text(name.empty() ? "comm " + hex16(id) : std::string(name)), size, {}});
  return next;
}

void Definitions::join(OTF2_CommRef comm, int32_t rank, uint32_t participant) {
  Comm& joined = comms_[comm];
  // A rank beyond the size would move all that follow it in the group.
  const uint32_t ranks = joined.size != 0 ? joined.size : kMaxRanks;
  if (rank < 0 || static_cast<uint32_t>(rank) >= ranks ||
      !joined.members.try_emplace(rank, participant).second)
    ++misplaced_members_;
}

void Definitions::complete(Archive& archive) {
  size_t absent = 0;
  for (const Comm& comm : comms_) {
    if (comm.size > comm.members.size()) absent = std::max(absent, comm.size - comm.members.size());
  }
  if (absent == 0) return;
  absent = std::min<size_t>(absent, kMaxAbsent);
  const OTF2_SystemTreeNodeRef nowhere = host("not recorded", "");
  for (size_t i = 0; i < absent; ++i) {
    const std::string name = "rank that was not recorded " + std::to_string(i + 1);
    const OTF2_LocationRef place = location(name, OTF2_LOCATION_TYPE_CPU_THREAD, process(name, nowhere));
    // Every location needs a file of events, also one without any.
    archive.begin_location(place);
    // Behind all recorded ones in the list of ranks.
    participants_.push_back({{INT64_MAX, static_cast<int64_t>(i)}, place});
  }
}

void Definitions::write(Archive& archive, const std::string& run) {
  OTF2_GlobalDefWriter* const writer = archive.definitions();
  if (writer == nullptr) return;
  const OTF2_StringRef machine = text(run);
  // host() has counted from 1 on: the machine takes place 0.
  hosts_.insert(hosts_.begin(), machine);
  // All texts must have their numbers before write_texts(), and later definitions name them by number.
  for (std::string_view name : {"machine", "node", "MPI", "NCCL ranks"
#define ATTRIBUTE(id, type, name, description) , name, description
#include "exporters/otf2/attributes.def"
#undef ATTRIBUTE
       })
    text(name);
  const uint64_t length = first_ <= last_ ? last_ - first_ + 1 : 0;
  // The last number is the real time of the first event, ns since the epoch: here clock and real time are the
  // same.
  OTF2_GlobalDefWriter_WriteClockProperties(writer, kNsPerSecond, first_time(), length, first_time());
  write_texts(writer);
  write_tree(writer);
  write_communicators(writer);
}

void Definitions::write_texts(OTF2_GlobalDefWriter* writer) const {
  for (size_t i = 0; i < texts_.size(); ++i)
    OTF2_GlobalDefWriter_WriteString(writer, static_cast<OTF2_StringRef>(i), texts_[i]->c_str());
  auto known = [&](const char* text) { return text_refs_.at(text); };
  OTF2_GlobalDefWriter_WriteParadigm(writer, OTF2_PARADIGM_MPI, known("MPI"), OTF2_PARADIGM_CLASS_PROCESS);
#define ATTRIBUTE(id, type, name, description)                                                            \
  OTF2_GlobalDefWriter_WriteAttribute(writer, static_cast<OTF2_AttributeRef>(Attribute::id), known(name), \
                                      known(description), OTF2_TYPE_##type);
#include "exporters/otf2/attributes.def"
#undef ATTRIBUTE
  for (size_t i = 0; i < regions_.size(); ++i) {
    const Region& region = regions_[i];
    OTF2_GlobalDefWriter_WriteRegion(writer, static_cast<OTF2_RegionRef>(i), region.name, region.name, kEmpty,
                                     region.role, region.paradigm, OTF2_REGION_FLAG_NONE, kEmpty, 0, 0);
  }
}

void Definitions::write_tree(OTF2_GlobalDefWriter* writer) const {
  const OTF2_StringRef machine = text_refs_.at("machine"), node = text_refs_.at("node");
  for (OTF2_SystemTreeNodeRef i = 0; i < hosts_.size(); ++i) {
    OTF2_GlobalDefWriter_WriteSystemTreeNode(writer, i, hosts_[i], i == 0 ? machine : node,
                                             i == 0 ? OTF2_UNDEFINED_SYSTEM_TREE_NODE : 0);
    OTF2_GlobalDefWriter_WriteSystemTreeNodeDomain(
        writer, i, i == 0 ? OTF2_SYSTEM_TREE_DOMAIN_MACHINE : OTF2_SYSTEM_TREE_DOMAIN_SHARED_MEMORY);
  }
  for (OTF2_LocationGroupRef i = 0; i < groups_.size(); ++i) {
    const bool is_device = groups_[i].creator != OTF2_UNDEFINED_LOCATION_GROUP;
    OTF2_GlobalDefWriter_WriteLocationGroup(
        writer, i, groups_[i].name,
        is_device ? OTF2_LOCATION_GROUP_TYPE_ACCELERATOR : OTF2_LOCATION_GROUP_TYPE_PROCESS, groups_[i].host,
        groups_[i].creator);
  }
  for (const Property& property : properties_) {
    OTF2_AttributeValue value;
    value.stringRef = property.value;
    OTF2_GlobalDefWriter_WriteLocationGroupProperty(writer, property.group, property.name, OTF2_TYPE_STRING,
                                                    value);
  }
  for (OTF2_LocationRef i = 0; i < locations_.size(); ++i) {
    OTF2_GlobalDefWriter_WriteLocation(writer, i, locations_[i].name, locations_[i].type,
                                       locations_[i].events, locations_[i].group);
  }
}

void Definitions::write_communicators(OTF2_GlobalDefWriter* writer) {
  // Processes come in the order in which they were read; the list of ranks is in the order of ranks. Groups
  // name members by index into that list, not by location.
  std::vector<uint32_t> by_rank(participants_.size()), index_of(participants_.size());
  for (uint32_t i = 0; i < by_rank.size(); ++i) by_rank[i] = i;
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](uint32_t a, uint32_t b) { return participants_[a].order < participants_[b].order; });
  std::vector<uint64_t> ranks;
  for (uint32_t index = 0; index < by_rank.size(); ++index) {
    index_of[by_rank[index]] = index;
    ranks.push_back(participants_[by_rank[index]].location);
  }
  OTF2_GlobalDefWriter_WriteGroup(writer, 0, text_refs_.at("NCCL ranks"), OTF2_GROUP_TYPE_COMM_LOCATIONS,
                                  OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                  static_cast<uint32_t>(ranks.size()), ranks.data());
  for (OTF2_CommRef i = 0; i < comms_.size(); ++i) {
    const std::vector<uint64_t> members = group_members(comms_[i], index_of);
    OTF2_GlobalDefWriter_WriteGroup(writer, i + 1, comms_[i].name, OTF2_GROUP_TYPE_COMM_GROUP,
                                    OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                    static_cast<uint32_t>(members.size()), members.data());
    OTF2_GlobalDefWriter_WriteComm(writer, i, comms_[i].name, i + 1, OTF2_UNDEFINED_COMM,
                                   OTF2_COMM_FLAG_NONE);
  }
}

// Indexes into the list of ranks. Where the size is unknown, the recorded members alone.
std::vector<uint64_t> Definitions::group_members(const Comm& comm,
                                                 const std::vector<uint32_t>& index_of) const {
  std::vector<uint64_t> members;
  uint32_t absent = recorded_;
  for (const auto& [rank, participant] : comm.members) {
    // A member's place in a group is its rank, so ranks that nobody recorded take theirs.
    while (comm.size != 0 && members.size() < static_cast<size_t>(rank)) {
      members.push_back(index_of[absent]);
      if (absent + 1 < index_of.size()) ++absent;
    }
    members.push_back(index_of[participant]);
  }
  while (members.size() < comm.size) {
    members.push_back(index_of[absent]);
    if (absent + 1 < index_of.size()) ++absent;
  }
  return members;
}

}  // namespace lockstep::exporters::otf2
