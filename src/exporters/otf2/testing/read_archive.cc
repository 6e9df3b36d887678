// SPDX-License-Identifier: Apache-2.0
#include "exporters/otf2/testing/read_archive.h"

#include <memory>
#include <utility>

namespace lockstep::exporters::otf2::testing {
namespace {

struct Open {
  OTF2_RegionRef region;
  uint64_t time;
};
struct Place {
  uint64_t last = 0;
  std::vector<Open> open;
  std::vector<uint64_t> collectives;  // begun
};

class Reading {
 public:
  ReadArchive archive;

  void definitions(OTF2_GlobalDefReaderCallbacks* callbacks) {
    OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(
        callbacks, [](void* self, uint64_t, uint64_t offset, uint64_t length, uint64_t) {
          of(self).archive.first_time = offset;
          of(self).archive.length = length;
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalDefReaderCallbacks_SetStringCallback(callbacks,
                                                    [](void* self, OTF2_StringRef ref, const char* text) {
                                                      of(self).texts_[ref] = text;
                                                      return OTF2_CALLBACK_SUCCESS;
                                                    });
    OTF2_GlobalDefReaderCallbacks_SetRegionCallback(
        callbacks, [](void* self, OTF2_RegionRef ref, OTF2_StringRef name, OTF2_StringRef, OTF2_StringRef,
                      OTF2_RegionRole, OTF2_Paradigm, OTF2_RegionFlag, OTF2_StringRef, uint32_t, uint32_t) {
          of(self).regions_[ref] = of(self).texts_.at(name);
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(
        callbacks, [](void* self, OTF2_LocationGroupRef ref, OTF2_StringRef name, OTF2_LocationGroupType type,
                      OTF2_SystemTreeNodeRef, OTF2_LocationGroupRef creator) {
          of(self).archive.groups[ref] = {of(self).texts_.at(name), type, creator};
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalDefReaderCallbacks_SetLocationCallback(
        callbacks, [](void* self, OTF2_LocationRef ref, OTF2_StringRef name, OTF2_LocationType type,
                      uint64_t events, OTF2_LocationGroupRef group) {
          of(self).archive.locations[ref] = {of(self).texts_.at(name), type, group, events, 0};
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalDefReaderCallbacks_SetGroupCallback(
        callbacks, [](void* self, OTF2_GroupRef ref, OTF2_StringRef, OTF2_GroupType type, OTF2_Paradigm,
                      OTF2_GroupFlag, uint32_t count, const uint64_t* members) {
          Reading& reading = of(self);
          std::vector<uint64_t>& known = reading.groups_[ref];
          known.assign(members, members + count);
          if (type == OTF2_GROUP_TYPE_COMM_LOCATIONS) reading.archive.ranks = known;
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalDefReaderCallbacks_SetCommCallback(
        callbacks, [](void* self, OTF2_CommRef ref, OTF2_StringRef name, OTF2_GroupRef group, OTF2_CommRef,
                      OTF2_CommFlag) {
          Reading& reading = of(self);
          ReadComm& comm = reading.archive.comms[ref];
          comm.name = reading.texts_.at(name);
          for (uint64_t index : reading.groups_.at(group))
            comm.members.push_back(reading.archive.ranks.at(index));
          return OTF2_CALLBACK_SUCCESS;
        });
  }

  void events(OTF2_GlobalEvtReaderCallbacks* callbacks) {
    OTF2_GlobalEvtReaderCallbacks_SetEnterCallback(
        callbacks, [](OTF2_LocationRef location, OTF2_TimeStamp time, void* self, OTF2_AttributeList*,
                      OTF2_RegionRef region) {
          of(self).at(location, time).open.push_back({region, time});
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalEvtReaderCallbacks_SetLeaveCallback(
        callbacks, [](OTF2_LocationRef location, OTF2_TimeStamp time, void* self, OTF2_AttributeList*,
                      OTF2_RegionRef region) {
          of(self).leave(location, time, region);
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalEvtReaderCallbacks_SetMpiSendCallback(
        callbacks, [](OTF2_LocationRef location, OTF2_TimeStamp time, void* self, OTF2_AttributeList*,
                      uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes) {
          of(self).at(location, time);
          of(self).archive.messages.push_back({location, comm, peer, tag, bytes, time, true});
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalEvtReaderCallbacks_SetMpiRecvCallback(
        callbacks, [](OTF2_LocationRef location, OTF2_TimeStamp time, void* self, OTF2_AttributeList*,
                      uint32_t peer, OTF2_CommRef comm, uint32_t tag, uint64_t bytes) {
          of(self).at(location, time);
          of(self).archive.messages.push_back({location, comm, peer, tag, bytes, time, false});
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveBeginCallback(
        callbacks, [](OTF2_LocationRef location, OTF2_TimeStamp time, void* self, OTF2_AttributeList*) {
          of(self).at(location, time).collectives.push_back(time);
          return OTF2_CALLBACK_SUCCESS;
        });
    OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveEndCallback(
        callbacks,
        [](OTF2_LocationRef location, OTF2_TimeStamp time, void* self, OTF2_AttributeList*,
           OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t received) {
          of(self).end_collective({location, comm, op, root, sent, received, 0, time});
          return OTF2_CALLBACK_SUCCESS;
        });
  }

  void markers(OTF2_MarkerReaderCallbacks* callbacks) {
    OTF2_MarkerReaderCallbacks_SetMarkerCallback(
        callbacks, [](void* self, OTF2_TimeStamp, OTF2_TimeStamp, OTF2_MarkerRef, OTF2_MarkerScope, uint64_t,
                      const char* text) {
          of(self).archive.markers.emplace_back(text);
          return OTF2_CALLBACK_SUCCESS;
        });
  }

  void check_ends() {
    for (const auto& [ref, location] : archive.locations) {
      if (location.announced != location.events) problem(ref, "has another number of events than announced");
      if (!places_[ref].open.empty()) problem(ref, "leaves regions open");
      if (!places_[ref].collectives.empty()) problem(ref, "leaves collectives open");
    }
  }

 private:
  static Reading& of(void* self) { return *static_cast<Reading*>(self); }
  void problem(OTF2_LocationRef location, const std::string& what) {
    archive.problems.push_back(archive.locations[location].name + " " + what);
  }
  Place& at(OTF2_LocationRef location, uint64_t time) {
    Place& place = places_[location];
    if (time < place.last) problem(location, "goes back in time");
    if (time < archive.first_time || time - archive.first_time >= archive.length)
      problem(location, "has a time outside the trace");
    place.last = time;
    ++archive.locations[location].events;
    ++archive.events;
    return place;
  }
  void leave(OTF2_LocationRef location, uint64_t time, OTF2_RegionRef region) {
    Place& place = at(location, time);
    if (place.open.empty() || place.open.back().region != region)
      return problem(location, "leaves another region");
    const bool is_host = archive.locations[location].type == OTF2_LOCATION_TYPE_CPU_THREAD;
    ReadVisits& visits = (is_host ? archive.host_regions : archive.stream_regions)[regions_.at(region)];
    ++visits.count;
    visits.ns += time - place.open.back().time;
    place.open.pop_back();
  }
  void end_collective(ReadCollective collective) {
    Place& place = at(collective.location, collective.end);
    if (place.collectives.size() != 1)
      return problem(collective.location, "has collectives within each other");
    collective.begin = place.collectives.back();
    place.collectives.pop_back();
    archive.collectives.push_back(collective);
  }

  std::map<OTF2_StringRef, std::string> texts_;
  std::map<OTF2_RegionRef, std::string> regions_;
  std::map<OTF2_GroupRef, std::vector<uint64_t>> groups_;
  std::map<OTF2_LocationRef, Place> places_;
};

}  // namespace

Result<ReadArchive> read_archive(const std::string& folder) {
  const std::unique_ptr<OTF2_Reader, OTF2_ErrorCode (*)(OTF2_Reader*)> owner(
      OTF2_Reader_Open((folder + "/traces.otf2").c_str()), OTF2_Reader_Close);
  OTF2_Reader* const reader = owner.get();
  if (reader == nullptr) return Error{ErrorCode::kInvalidInput, "libotf2 does not open it", folder};
  OTF2_Reader_SetSerialCollectiveCallbacks(reader);
  Reading reading;
  bool ok = true;
  auto check = [&](OTF2_ErrorCode code) { ok = ok && code == OTF2_SUCCESS; };
  uint64_t read = 0;

  OTF2_GlobalDefReader* const definitions = OTF2_Reader_GetGlobalDefReader(reader);
  OTF2_GlobalDefReaderCallbacks* const of_definitions = OTF2_GlobalDefReaderCallbacks_New();
  reading.definitions(of_definitions);
  check(OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, of_definitions, &reading));
  OTF2_GlobalDefReaderCallbacks_Delete(of_definitions);
  check(OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &read));

  for (const auto& [location, unused] : reading.archive.locations)
    check(OTF2_Reader_SelectLocation(reader, location));
  check(OTF2_Reader_OpenDefFiles(reader));
  check(OTF2_Reader_OpenEvtFiles(reader));
  for (const auto& [location, unused] : reading.archive.locations) {
    OTF2_DefReader* const local = OTF2_Reader_GetDefReader(reader, location);
    ok = ok && local != nullptr && OTF2_Reader_GetEvtReader(reader, location) != nullptr;
    if (local == nullptr) break;
    check(OTF2_Reader_ReadAllLocalDefinitions(reader, local, &read));
    check(OTF2_Reader_CloseDefReader(reader, local));
  }
  check(OTF2_Reader_CloseDefFiles(reader));
  if (!ok) return Error{ErrorCode::kInvalidInput, "libotf2 does not read its definitions", folder};

  OTF2_GlobalEvtReader* const events = OTF2_Reader_GetGlobalEvtReader(reader);
  OTF2_GlobalEvtReaderCallbacks* const of_events = OTF2_GlobalEvtReaderCallbacks_New();
  reading.events(of_events);
  check(OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, of_events, &reading));
  OTF2_GlobalEvtReaderCallbacks_Delete(of_events);
  check(OTF2_Reader_ReadAllGlobalEvents(reader, events, &read));
  check(OTF2_Reader_CloseGlobalEvtReader(reader, events));
  check(OTF2_Reader_CloseEvtFiles(reader));

  OTF2_MarkerReader* const markers = OTF2_Reader_GetMarkerReader(reader);
  if (markers != nullptr) {
    OTF2_MarkerReaderCallbacks* const of_markers = OTF2_MarkerReaderCallbacks_New();
    reading.markers(of_markers);
    check(OTF2_Reader_RegisterMarkerCallbacks(reader, markers, of_markers, &reading));
    OTF2_MarkerReaderCallbacks_Delete(of_markers);
    check(OTF2_Reader_ReadAllMarkers(reader, markers, &read));
    check(OTF2_Reader_CloseMarkerReader(reader, markers));
  }
  if (!ok) return Error{ErrorCode::kInvalidInput, "libotf2 does not read its events", folder};
  reading.check_ends();
  return std::move(reading.archive);
}

}  // namespace lockstep::exporters::otf2::testing
