// SPDX-License-Identifier: Apache-2.0
#include "golden/recorded_files.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "nccl_host/json_line.h"
#include "nccl_host/tape.h"
#include "readers/native/file_builder.h"

namespace lockstep::golden {
namespace {

using format::Kind;
using readers::native::FileBuilder;
using sim::Call;
using sim::CallKind;
namespace abi = nccl_abi;

format::RecordHead head(uint64_t start, uint64_t stop, uint8_t flags = 0) {
  const uint64_t length = stop > start ? std::min<uint64_t>(stop - start, format::kSaturated - 1) : 0;
  return {start, static_cast<uint32_t>(length), Kind::kNone,
          static_cast<uint8_t>(flags | (stop != 0 ? format::kFlagStopped : 0)), 0};
}

template <size_t N>
void put(char (&field)[N], std::string_view text) {
  std::copy_n(text.data(), std::min(text.size(), N - 1), field);
}

// What both files of a process say of it.
void name_process(const sim::Program& program, FileBuilder& file) {
  sim::CommInfo world;
  for (const sim::CommInfo& comm : program.comms) {
    if (comm.ranks > world.ranks) world = comm;
  }
  format::FileHeader& header = file.header();
  header.pid = static_cast<int32_t>(program.recorded_pid);
  header.rank = header.local_rank = world.rank;
  header.world = header.local_world = world.ranks;
}

class NcclFile {
 public:
  NcclFile(const sim::Program& program, const RecordedOptions& options)
      : program_(program),
        options_(options),
        handles_(program.handle_count),
        stops_(program.handle_count),
        gpu_stops_(program.handle_count) {
    name_process(program, file_);
    for (const Call& call : program.calls) {
      if (call.kind == CallKind::kStop) stops_[call.handle] = call.when_ns;
      if (call.kind == CallKind::kState && call.state == abi::kKernelChStop)
        gpu_stops_[call.handle] = call.value;
    }
    for (size_t thread = 0; thread < program.threads.size(); ++thread) {
      const auto tid = static_cast<uint32_t>(program.thread_ids[thread]);
      logs_.push_back(&file_.log(tid, program.threads[thread], tid));
    }
    for (const Call& call : program.calls) {
      if (call.kind == CallKind::kInit) init(call);
      if (call.kind == CallKind::kStart) start(call, program.starts[call.detail]);
    }
  }
  const FileBuilder& file() const { return file_; }

 private:
  void init(const Call& call) {
    const sim::CommInfo& info = program_.comms[call.detail];
    format::CommDef comm{};
    comm.comm_id = info.id;
    comm.rank = info.rank;
    comm.ranks = info.ranks;
    comm.nodes = info.nodes;
    comm.api_version = 5;
    comm.device = -1;
    put(comm.name, info.name == nullptr ? "" : info.name);
    comms_[call.context] = file_.comm(comm);
  }

  uint16_t shape(size_t thread, const char* func, const char* datatype, const char* algo, const char* proto,
                 int root) {
    const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
    auto key = std::tuple(thread, text(func), text(datatype), text(algo), text(proto), root);
    auto [at, is_new] = shapes_.try_emplace(std::move(key), uint16_t{0});
    if (is_new) at->second = logs_[thread]->shape(text(func), text(datatype), text(algo), text(proto), root);
    return at->second;
  }
  uint16_t stream(size_t thread, const void* pointer) {
    auto [at, is_new] = streams_.try_emplace({thread, reinterpret_cast<uint64_t>(pointer)}, uint16_t{0});
    if (is_new && pointer != nullptr) at->second = logs_[thread]->stream(reinterpret_cast<uint64_t>(pointer));
    return at->second;
  }

  // With the parent as link: near in the same log, else as a record of its own.
  template <class Record>
  void add(const Call& call, Kind kind, Record record, uint32_t parent) {
    FileBuilder::Log& log = *logs_[call.thread];
    record.head = {record.head.start, record.head.stop_after, Kind::kNone, record.head.flags, 0};
    const uint64_t above = parent == sim::kNone ? 0 : handles_[parent];
    if (above == 0) {
      handles_[call.handle] = log.add(kind, record);
      return;
    }
    handles_[call.handle] = log.add_child(kind, record, above);
    if (log.last<Record>().head.link == format::kFarLink)
      log.add(Kind::kLink, format::LinkRecord{head(call.when_ns, 0), handles_[call.handle], above});
  }

  template <class Record>
  void link_group(const Call& call, uint32_t group, Record& record) {
    if (group == sim::kNone || handles_[group] == 0) return;
    // In front of a link record that may follow: both are measured from the record itself.
    record.group_link = logs_[call.thread]->distance(handles_[group], sizeof record);
  }

  // What NCCL reports of a capture's operations later on: replays.
  bool is_replay(const sim::Start& start) const {
    const sim::Start* api = start.parent == sim::kNone ? nullptr : start_of(start.parent);
    if (api == nullptr) return false;
    const abi::v7::Descriptor& d = api->descriptor;
    return (d.type == abi::kTypeCollApi && d.coll_api.graph_captured) ||
           (d.type == abi::kTypeP2pApi && d.p2p_api.graph_captured);
  }
  const sim::Start* start_of(uint32_t handle) const {
    const auto at = starts_.find(handle);
    return at == starts_.end() ? nullptr : at->second;
  }

  void start(const Call& call, const sim::Start& start) {
    starts_[call.handle] = &start;
    const abi::v7::Descriptor& d = start.descriptor;
    const uint32_t comm = comms_.contains(call.context) ? comms_.at(call.context) : format::kNoComm;
    const format::RecordHead times = head(call.when_ns, stops_[call.handle]);
    const auto captured = [&](bool is) {
      format::RecordHead flagged = times;
      if (is) flagged.flags |= format::kFlagGraphCaptured;
      return flagged;
    };
    switch (d.type) {
      case abi::kTypeGroupApi:
        return add(call, Kind::kGroupApi,
                   format::GroupApiRecord{captured(d.group_api.graph_captured), comm, 0, 0, 1}, sim::kNone);
      case abi::kTypeCollApi: {
        const auto& api = d.coll_api;
        const uint16_t of = shape(call.thread, api.func, api.datatype, nullptr, nullptr, api.root);
        return add(call, Kind::kCollApi,
                   format::CollApiRecord{captured(api.graph_captured), api.count, comm, of,
                                         stream(call.thread, api.stream)},
                   start.parent);
      }
      case abi::kTypeP2pApi: {
        const auto& api = d.p2p_api;
        const uint16_t of = shape(call.thread, api.func, api.datatype, nullptr, nullptr, 0);
        return add(call, Kind::kP2pApi,
                   format::P2pApiRecord{captured(api.graph_captured), api.count, comm, of,
                                        stream(call.thread, api.stream)},
                   start.parent);
      }
      case abi::kTypeKernelLaunch:
        return add(call, Kind::kKernelLaunch,
                   format::KernelLaunchRecord{times, comm, stream(call.thread, d.kernel_launch.stream), 0, 0},
                   start.parent);
      case abi::kTypeGroup:
        return add(call, Kind::kGroup, format::GroupRecord{times, comm, 0, 0}, sim::kNone);
      case abi::kTypeColl: {
        if (!options_.kernel_channels && is_replay(start)) return;
        const auto& coll = d.coll;
        const uint16_t of = shape(call.thread, coll.func, coll.datatype, coll.algo, coll.proto, coll.root);
        format::CollRecord record{times, coll.count,    0,          0, coll.seq, comm,
                                  of,    coll.channels, coll.warps, 0, 0};
        link_group(call, start.parent_group, record);
        return add(call, Kind::kColl, record, start.parent);
      }
      case abi::kTypeP2p: {
        if (!options_.kernel_channels && is_replay(start)) return;
        const uint16_t of = shape(call.thread, d.p2p.func, d.p2p.datatype, nullptr, nullptr, 0);
        format::P2pRecord record{times, d.p2p.count, 0, comm, d.p2p.peer, 0, of, d.p2p.channels, 0};
        link_group(call, start.parent_group, record);
        return add(call, Kind::kP2p, record, start.parent);
      }
      case abi::kTypeKernelCh: {
        if (!options_.kernel_channels || start.parent == sim::kNone) return;
        format::KernelChRecord record{
            times, handles_[start.parent], d.kernel_ch.ptimer, gpu_stops_[call.handle], comm, 0};
        record.head.link = d.kernel_ch.channel;
        handles_[call.handle] = logs_[call.thread]->add(Kind::kKernelCh, record);
        return;
      }
      default:
        return;
    }
  }

  const sim::Program& program_;
  const RecordedOptions& options_;
  FileBuilder file_;
  std::vector<FileBuilder::Log*> logs_;                // by thread
  std::vector<uint64_t> handles_, stops_, gpu_stops_;  // by handle of the tape
  std::map<uint32_t, const sim::Start*> starts_;       // likewise
  std::map<uint32_t, uint32_t> comms_;                 // context -> comm
  std::map<std::tuple<size_t, std::string, std::string, std::string, std::string, int>, uint16_t> shapes_;
  std::map<std::pair<size_t, uint64_t>, uint16_t> streams_;
};

Result<void> fill_cuda(const std::string& path, bool launch_calls, FileBuilder& file) {
  LOCKSTEP_ASSIGN(const std::string text, sim::read_recording(path));
  FileBuilder::Log& log = file.log(1, "cupti");
  std::map<std::string, uint32_t> names;
  sim::JsonLine json;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!json.parse(line)) return Error{ErrorCode::kInvalidInput, "no record: " + line, path};
    const format::RecordHead times = head(json.number("start"), json.number("end"));
    const auto correlation = static_cast<uint32_t>(json.number("correlation"));
    if (json.text("kind") == "kernel") {
      auto [name, is_new] = names.try_emplace(std::string(json.text("name")), 0);
      if (is_new) name->second = log.kernel_name(name->first);
      log.add(Kind::kKernel,
              format::KernelRecord{
                  times, name->second, correlation, static_cast<uint32_t>(json.number("stream")),
                  static_cast<uint16_t>(json.number("device")), 1, json.number("node"),
                  static_cast<uint32_t>(json.number("graph")), static_cast<uint32_t>(json.number("blocks"))});
    } else if (json.text("kind") == "api" && launch_calls) {
      const auto call =
          json.text("name") == "cuGraphLaunch" ? format::LaunchCall::kGraph : format::LaunchCall::kKernel;
      log.add(Kind::kLaunchCall,
              format::LaunchCallRecord{times, correlation, static_cast<uint32_t>(json.number("tid")), call, 0,
                                       0});
    }
  }
  return {};
}

}  // namespace

Result<void> write_recorded(const std::string& tape, const std::string& cupti, const std::string& directory,
                            const std::string& name, const RecordedOptions& options) {
  LOCKSTEP_ASSIGN(const sim::Program program, sim::read_tape(tape));
  if (program.calls.empty()) return Error{ErrorCode::kInvalidInput, "an empty tape", tape};
  const std::string path = directory + "/" + name;
  if (!NcclFile(program, options).file().write(path + ".nccl.lks"))
    return Error{ErrorCode::kIo, "cannot be written", path};
  if (cupti.empty()) return {};
  FileBuilder cuda;
  name_process(program, cuda);
  cuda.header().source = format::Source::kCuda;
  LOCKSTEP_TRY(fill_cuda(cupti, options.launch_calls, cuda));
  if (!cuda.write(path + ".cuda.lks")) return Error{ErrorCode::kIo, "cannot be written", path};
  return {};
}

}  // namespace lockstep::golden
