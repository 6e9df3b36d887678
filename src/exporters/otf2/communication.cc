// SPDX-License-Identifier: Apache-2.0
// Writes operations as MPI's collectives and messages, which is all that Score-P's tools compare between
// ranks (docs/decisions/0012-otf2-ranks-are-locations.md). A process with several GPUs is several
// participants: MPI knows one rank of a communicator for each location. Messages of a pair carry numbers as
// tags, since records of one pair may lie in another order than the messages.
#include "exporters/otf2/communication.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "exporters/common/process_slices.h"
#include "exporters/otf2/operation_records.h"
#include "model/event_kind.h"
#include "model/names/op_names.h"

namespace lockstep::exporters::otf2 {
namespace {

constexpr size_t kMaxLanes = 64;  // of one rank; PyTorch has one stream a group and a few groups
constexpr uint8_t kHostTime = 0;  // GpuTimeSource::kNone
constexpr uint32_t kNoTag = UINT32_MAX;

OTF2_TimeStamp stamp(int64_t time_ns) { return static_cast<OTF2_TimeStamp>(time_ns); }

}  // namespace

Communication::Communication(const model::Trace& trace, int64_t number, const std::string& who,
                             OTF2_LocationGroupRef process, Definitions& definitions)
    : trace_(trace),
      number_(number),
      who_(who),
      process_(process),
      definitions_(definitions),
      numbers_(trace) {
  for (uint8_t source = 0; source <= static_cast<uint8_t>(model::GpuTimeSource::kNetwork); ++source)
    sources_.push_back(definitions.text(source == kHostTime ? "host" : model::gpu_source_name(source)));
  add_communicators();
}

// Devices without a number over the run are told apart by the process' own numbers, as keys below 0.
uint32_t Communication::participant_of(int32_t device, int32_t gpu) {
  const int64_t key = gpu >= 0 ? gpu : -2 - int64_t{device};
  for (uint32_t i = 0; i < participants_.size(); ++i) {
    if (participants_[i].device == key) return i;
  }
  std::string name = "NCCL, " + who_;
  if (!participants_.empty()) name += ", device " + std::to_string(device);
  const OTF2_LocationRef location = definitions_.location(name, OTF2_LOCATION_TYPE_CPU_THREAD, process_);
  participants_.push_back({key, location, {location}});
  return static_cast<uint32_t>(participants_.size() - 1);
}

void Communication::add_communicators() {
  std::vector<uint32_t> global;  // numbers in the archive
  for (uint32_t row = 0; row < trace_.comms.size(); ++row) {
    const bool has_device = trace_.comms.device[row] >= 0;
    const uint32_t own = has_device ? participant_of(trace_.comms.device[row], trace_.comms.gpu[row])
                                    : participant_of(trace_.processes.device[0], trace_.processes.gpu[0]);
    // Participants are numbered here in the order in which communicators name their devices.
    if (own == global.size()) {
      const Participant& added = participants_[own];
      global.push_back(definitions_.participant({number_, added.device}, added.location));
    }
    comm_participant_.push_back(own);
    comm_refs_.push_back(definitions_.comm(trace_, row));
    definitions_.join(comm_refs_.back(), trace_.comms.rank[row], global[own]);
  }
  // A process has a location for what it does in communicators that nobody knows, and at least one.
  if (participants_.empty()) participant_of(trace_.processes.device[0], trace_.processes.gpu[0]);
}

// GPU times where they are known, as every timeline has them.
void Communication::add_intervals(Omitted& omitted) {
  const model::OpTable& ops = trace_.ops;
  const int64_t last = std::max(trace_.processes.last_ns[0], trace_.processes.heartbeat_ns[0]);
  intervals_.reserve(ops.size());
  for (uint32_t op = 0; op < ops.size(); ++op) {
    int64_t start = ops.gpu_start_ns[op], end = ops.gpu_end_ns[op];
    // Decided for the whole operation: a begin on the GPU and an end on the host would make a wrong length.
    if (start == 0) {
      const common::Interval host = common::host_interval(trace_, op);
      start = host.start;
      end = host.end;
    }
    if (start <= 0) {
      ++omitted.without_time;
      continue;
    }
    // Open operations reach to the last sign of life; their records say that they are unfinished.
    if (end == 0) end = last;
    const uint32_t comm = ops.comm[op];
    intervals_.push_back(
        {start, std::max(start, end), op, comm < comm_participant_.size() ? comm_participant_[comm] : 0});
  }
  std::sort(intervals_.begin(), intervals_.end(), [](const Interval& a, const Interval& b) {
    return std::tie(a.participant, a.start, a.end, a.op) < std::tie(b.participant, b.start, b.end, b.op);
  });
}

// MPI's rule is that messages of one pair and tag keep their order: with a tag of its own each message says
// which it is, wherever its record lies.
void Communication::number_messages() {
  const model::OpTable& ops = trace_.ops;
  tags_.assign(ops.size(), kNoTag);
  if (!numbers_.messages_from()) return;
  // Windows that began with different steps must not count alike.
  const uint32_t first = *numbers_.messages_from() == model::OperationNumbers::kFromBegin
                             ? 0
                             : static_cast<uint32_t>(*numbers_.messages_from()) * 0x9e3779b1u;
  std::unordered_map<uint64_t, uint32_t> sent, received;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (ops.peer[op] < 0) continue;
    // Sends and receives count apart: MPI matches the n-th send of one rank with the n-th receive of the
    // other.
    const uint64_t pair = uint64_t{ops.comm[op]} << 32 | static_cast<uint32_t>(ops.peer[op]);
    tags_[op] = first + (words(op).is_send ? sent : received)[pair]++;
  }
}

// What one kernel does begins and ends together, and so stands together in the order of intervals.
void Communication::make_units() {
  for (uint32_t i = 0; i < intervals_.size(); ++i) {
    const Interval& interval = intervals_[i];
    if (!units_.empty()) {
      Unit& last = units_.back();
      const bool is_message = words(interval.op).form == Form::kMessage;
      if (last.participant == interval.participant && last.start == interval.start &&
          last.end == interval.end &&
          // Messages and collectives differ in how they are written, so they never share a unit.
          is_message == (words(intervals_[last.first].op).form == Form::kMessage)) {
        ++last.count;
        continue;
      }
    }
    units_.push_back({interval.start, interval.end, i, 1, interval.participant, 0});
  }
}

// Each unit goes to the first lane that is free. When there are kMaxLanes, to the one that is free soonest,
// and begins then.
void Communication::assign_lanes(Omitted& omitted) {
  std::vector<int64_t> free_from;
  uint32_t current = model::kNoRow;
  for (Unit& unit : units_) {
    if (unit.participant != current) {
      current = unit.participant;
      free_from.clear();
    }
    size_t lane = 0;
    // First fit. Units come by their begin within a participant, so each lane is in order of time, as OTF2
    // wants.
    while (lane < free_from.size() && free_from[lane] > unit.start) ++lane;
    if (lane == kMaxLanes) {
      lane = static_cast<size_t>(std::min_element(free_from.begin(), free_from.end()) - free_from.begin());
      unit.start = free_from[lane];
      unit.end = std::max(unit.start, unit.end);
      omitted.cut_short += unit.count;
    }
    if (lane == free_from.size()) free_from.push_back(0);
    free_from[lane] = unit.end;
    unit.lane = static_cast<uint32_t>(lane);
    std::vector<OTF2_LocationRef>& lanes = participants_[current].lanes;
    if (lane == lanes.size()) {
      lanes.push_back(definitions_.location("+" + std::to_string(lane) + " NCCL, " + who_,
                                            OTF2_LOCATION_TYPE_CPU_THREAD, process_));
    }
  }
  std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) {
    return std::tie(a.participant, a.lane) < std::tie(b.participant, b.lane);
  });
}

const Communication::Words& Communication::words(uint32_t op) {
  const model::OpTable& ops = trace_.ops;
  const bool custom = ops.kind[op] == model::number(model::EventKind::kApiOp);
  // Two bits of a communicator's number are lost here, which no trace has.
  const uint64_t key = (uint64_t{ops.comm[op]} << 32 | ops.shape[op]) * 4 + (ops.peer[op] >= 0) * 2 + custom;
  const auto place = words_.find(key);
  return place != words_.end() ? place->second : words_.emplace(key, make_words(op)).first->second;
}

Communication::Words Communication::make_words(uint32_t op) {
  const model::OpTable& ops = trace_.ops;
  const uint32_t shape = ops.shape[op], comm = ops.comm[op];
  Words words;
  if (shape >= trace_.shapes.size()) {
    words.region =
        definitions_.region(definitions_.text("unknown"), OTF2_REGION_ROLE_COLL_OTHER, OTF2_PARADIGM_MPI);
    return words;
  }
  const std::string_view func = trace_.strings[trace_.shapes.func[shape]];
  words.datatype = definitions_.text(trace_.strings[trace_.shapes.datatype[shape]]);
  words.algorithm = definitions_.text(trace_.strings[trace_.shapes.algo[shape]]);
  words.protocol = definitions_.text(trace_.strings[trace_.shapes.proto[shape]]);
  const uint32_t size = comm < comm_refs_.size() ? definitions_.comm_size(comm_refs_[comm]) : 0;
  OTF2_RegionRole role = OTF2_REGION_ROLE_COLL_OTHER;
  if (ops.peer[op] >= 0) {
    role = OTF2_REGION_ROLE_POINT2POINT;
    words.is_send = func == "Send";
    // A record names the peer by its rank in the communicator, which must have a group that holds it.
    if (size != 0) words.form = Form::kMessage;
  } else if (const auto kind = collective_kind(model::nccl_func(func))) {
    role = kind->role;
    words.op = kind->op;
    words.is_rooted = kind->has_root;
    const auto root = static_cast<uint32_t>(trace_.shapes.root[shape]);
    if (kind->has_root) words.root = root;
    // A damaged file may name any root; readers index the group with it. An unknown one is -1, so above any
    // size.
    if (comm < comm_refs_.size() && (!kind->has_root || root < size)) words.form = Form::kCollective;
  }
  const OTF2_StringRef name =
      words.form == Form::kMessage ? definitions_.text("Send and receive") : definitions_.text(func);
  words.region = definitions_.region(name, role, OTF2_PARADIGM_MPI);
  return words;
}

bool Communication::is_unfinished(uint32_t op) const {
  if (trace_.ops.gpu_start_ns[op] != 0) return trace_.ops.gpu_end_ns[op] == 0;
  return common::host_interval(trace_, op).end == 0;
}

void Communication::describe(uint32_t op, const Words& words) {
  const model::OpTable& ops = trace_.ops;
  auto number = [&](Attribute attribute, uint64_t value) {
    OTF2_AttributeList_AddUint64(attributes_, static_cast<OTF2_AttributeRef>(attribute), value);
  };
  auto text = [&](Attribute attribute, OTF2_StringRef value) {
    if (value != 0)
      OTF2_AttributeList_AddStringRef(attributes_, static_cast<OTF2_AttributeRef>(attribute), value);
  };
  if (ops.index[op] != model::kNoIndex && numbers_.has_same_index(ops.comm[op], ops.peer[op]))
    number(Attribute::kIndex, ops.index[op]);
  if (ops.seq[op] != model::kNoSeq) number(Attribute::kSeq, ops.seq[op]);
  if (ops.count[op] != 0) number(Attribute::kElements, ops.count[op]);
  text(Attribute::kDatatype, words.datatype);
  text(Attribute::kAlgorithm, words.algorithm);
  text(Attribute::kProtocol, words.protocol);
  const uint8_t source = ops.gpu_start_ns[op] != 0 ? ops.gpu_source[op] : kHostTime;
  text(Attribute::kTimeSource, sources_[std::min<size_t>(source, sources_.size() - 1)]);
}

void Communication::write_messages(const Unit& unit, OTF2_EvtWriter* writer, Omitted& omitted) {
  const model::OpTable& ops = trace_.ops;
  const OTF2_RegionRef region = words(intervals_[unit.first].op).region;
  OTF2_EvtWriter_Enter(writer, nullptr, stamp(unit.start), region);
  // All sends stand at the begin and all receives at the end: events of a location must not go back in time.
  for (const bool sends : {true, false}) {
    for (uint32_t i = unit.first; i < unit.first + unit.count; ++i) {
      const uint32_t op = intervals_[i].op;
      const Words& known = words(op);
      if (known.is_send != sends) continue;
      const OTF2_CommRef comm = comm_refs_[ops.comm[op]];
      const auto peer = static_cast<uint32_t>(ops.peer[op]);
      // A damaged file may name any peer; and a message whose number is not known would be taken for another.
      if (peer >= definitions_.comm_size(comm) || tags_[op] == kNoTag) {
        ++omitted.without_record;
        continue;
      }
      if (is_unfinished(op)) {
        ++omitted.unfinished;
        continue;
      }
      // The library empties the list of attributes with each record that takes it.
      describe(op, known);
      if (sends)
        OTF2_EvtWriter_MpiSend(writer, attributes_, stamp(unit.start), peer, comm, tags_[op], ops.bytes[op]);
      else
        OTF2_EvtWriter_MpiRecv(writer, attributes_, stamp(unit.end), peer, comm, tags_[op], ops.bytes[op]);
    }
  }
  OTF2_EvtWriter_Leave(writer, nullptr, stamp(unit.end), region);
}

void Communication::write_operations(const Unit& unit, OTF2_EvtWriter* writer, Omitted& omitted) {
  const model::OpTable& ops = trace_.ops;
  for (uint32_t i = unit.first; i < unit.first + unit.count; ++i) {
    const uint32_t op = intervals_[i].op;
    const Words& known = words(op);
    // Collectives of one kernel cannot be told apart in time. The first has all of it, so that it is counted
    // once.
    const OTF2_TimeStamp start = stamp(i == unit.first ? unit.start : unit.end), end = stamp(unit.end);
    const bool unfinished = is_unfinished(op);
    if (known.form == Form::kCollective && !unfinished) {
      const uint32_t row = ops.comm[op];
      const bool is_root = known.is_rooted && trace_.comms.rank[row] >= 0 &&
                           known.root == static_cast<uint32_t>(trace_.comms.rank[row]);
      const bool is_whole = ops.kind[op] == model::number(model::EventKind::kApiOp);
      const Traffic moved = traffic(known.op, ops.bytes[op], is_whole, trace_.comms.ranks[row], is_root);
      OTF2_EvtWriter_Enter(writer, nullptr, start, known.region);
      OTF2_EvtWriter_MpiCollectiveBegin(writer, nullptr, start);
      describe(op, known);
      OTF2_EvtWriter_MpiCollectiveEnd(writer, attributes_, end, known.op, comm_refs_[row], known.root,
                                      moved.sent, moved.received);
    } else {
      describe(op, known);
      if (unfinished)
        OTF2_AttributeList_AddUint8(attributes_, static_cast<OTF2_AttributeRef>(Attribute::kUnfinished), 1);
      ++(unfinished ? omitted.unfinished : omitted.without_record);
      OTF2_EvtWriter_Enter(writer, attributes_, start, known.region);
    }
    OTF2_EvtWriter_Leave(writer, nullptr, end, known.region);
  }
}

uint64_t Communication::write(Archive& archive, Omitted& omitted) {
  // Lanes need units, and units need intervals in order of time.
  add_intervals(omitted);
  number_messages();
  make_units();
  assign_lanes(omitted);
  const std::unique_ptr<OTF2_AttributeList, OTF2_ErrorCode (*)(OTF2_AttributeList*)> attributes(
      OTF2_AttributeList_New(), OTF2_AttributeList_Delete);
  attributes_ = attributes.get();
  uint64_t events = 0;
  size_t next = 0;
  for (uint32_t who = 0; who < participants_.size(); ++who) {
    const std::vector<OTF2_LocationRef>& lanes = participants_[who].lanes;
    for (uint32_t lane = 0; lane < lanes.size(); ++lane) {
      OTF2_EvtWriter* const writer = archive.begin_location(lanes[lane]);
      if (writer == nullptr) return events;
      for (; next < units_.size() && units_[next].participant == who && units_[next].lane == lane; ++next) {
        const Unit& unit = units_[next];
        definitions_.seen(unit.start);
        definitions_.seen(unit.end);
        if (words(intervals_[unit.first].op).form == Form::kMessage)
          write_messages(unit, writer, omitted);
        else
          write_operations(unit, writer, omitted);
      }
      const uint64_t written = archive.end_location();
      definitions_.set_events(lanes[lane], written);
      events += written;
    }
  }
  return events;
}

}  // namespace lockstep::exporters::otf2
