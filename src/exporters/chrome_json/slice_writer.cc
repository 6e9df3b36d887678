// SPDX-License-Identifier: Apache-2.0
#include "exporters/chrome_json/slice_writer.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/event_kind.h"
#include "model/op_names.h"

namespace lockstep::exporters::chrome_json {
namespace {

uint64_t mix(uint64_t h, uint64_t value) {
  h = (h ^ value) * 0x9e3779b97f4a7c15;
  return h ^ (h >> 32);
}

// What NCCL calls to launch; HTA counts launches by this name.
constexpr std::string_view kLaunchName = "\"cudaLaunchKernelExC\"";
constexpr std::string_view kPhases[] = {"\"initial sync\"", "\"compute\"", "\"final sync\""};

std::string_view proxy_state(uint8_t state) {
  switch (state) {
    case 13:
      return "\"idle\"";
    case 14:
      return "\"active\"";
    case 15:
      return "\"sleep\"";
    case 17:
      return "\"append\"";
    default:
      return "\"proxy\"";
  }
}

}  // namespace

SliceWriter::SliceWriter(const model::Trace& trace, ProcessSlices& slices, int64_t base_ns,
                         uint64_t first_correlation, JsonWriter& json, Flows& flows)
    : trace_(trace),
      slices_(slices),
      base_ns_(base_ns),
      first_correlation_(first_correlation),
      json_(json),
      flows_(flows),
      texts_(trace) {
  for (uint32_t i = 0; i < slices.tracks().size(); ++i) {
    const Track& track = slices.tracks()[i];
    track_places_.push_back(",\"pid\":" + std::to_string(track.pid) +
                            ",\"tid\":" + std::to_string(track.tid) + ",\"ts\":");
  }
  for (uint32_t i = 0; i < trace.shapes.size(); ++i)
    call_names_.push_back(json_string(model::api_name(trace, i, false)));
  for (uint8_t kind = 0; kind < model::kEventKinds; ++kind)
    event_names_.push_back(json_string(model::event_name(kind)));
  arrow_.assign(trace.launches.size(), model::kNoRow);
  for (uint32_t row = 0; row < trace.kernels.size(); ++row) {
    const uint32_t launch = trace.kernels.launch[row];
    if (trace.kernels.op[row] < trace.ops.size() || launch >= arrow_.size() ||
        trace.kernels.start_ns[row] <= trace.launches.start_ns[launch])
      continue;
    uint32_t& first = arrow_[launch];
    if (first == model::kNoRow || trace.kernels.start_ns[row] < trace.kernels.start_ns[first]) first = row;
  }
  prepare_ops();
}

// What identifies each op: PyTorch's own numbers where they are known, and a key that all ranks share.
void SliceWriter::prepare_ops() {
  const model::OpTable& ops = trace_.ops;
  torch_seq_.assign(ops.size(), 0);
  torch_ids_.assign(ops.size(), 0);
  rank_keys_.assign(ops.size(), 0);
  model::TorchGroups torch(trace_);
  std::map<std::tuple<uint32_t, int32_t, bool>, uint64_t> messages;  // P2P so far by comm, peer and direction
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (auto tuple = torch.next(op)) {
      torch_seq_[op] = tuple->seq;
      torch_ids_[op] = model::comms_id(*tuple);
    }
    if (ops.launched_ns[op] != 0) op_by_launch_.try_emplace(ops.launched_ns[op], op);
    uint32_t comm = ops.comm[op];
    if (comm >= trace_.comms.size() || trace_.comms.comm_id[comm] == 0 || ops.index[op] == model::kNoIndex)
      continue;
    uint64_t key = mix(mix(0, trace_.comms.comm_id[comm]), static_cast<uint64_t>(trace_.comms.ranks[comm]));
    if (ops.peer[op] < 0) {
      rank_keys_[op] = mix(mix(key, 1), ops.index[op]) | 1;
      continue;
    }
    bool send =
        ops.shape[op] < trace_.shapes.size() && trace_.strings[trace_.shapes.func[ops.shape[op]]] == "Send";
    auto own = static_cast<uint64_t>(trace_.comms.rank[comm]), peer = static_cast<uint64_t>(ops.peer[op]);
    uint64_t number = messages[{comm, ops.peer[op], send}]++;
    rank_keys_[op] = mix(mix(mix(mix(key, 2), send ? own : peer), send ? peer : own), number) | 1;
  }
}

uint64_t SliceWriter::write() {
  write_metadata();
  for (const Slice& slice : slices_.slices()) write_slice(slice);
  write_marks();
  return events_;
}

void SliceWriter::write_metadata() {
  for (const ViewerProcess& process : slices_.viewer_processes()) {
    auto item = [&](std::string_view name, std::string_view key, const std::string& value) {
      json_.event("{\"ph\":\"M\",\"name\":\"").raw(name).raw("\",\"pid\":").signed_number(process.pid);
      json_.raw(",\"tid\":0,\"ts\":0.000,\"args\":{\"").raw(key).raw("\":").raw(value).raw("}}");
      ++events_;
    };
    item("process_name", "name", json_string(process.name));
    item("process_labels", "labels", json_string(process.label));
    item("process_sort_index", "sort_index", std::to_string(process.sort_index));
  }
  for (uint32_t i = 0; i < slices_.tracks().size(); ++i) {
    json_.event("{\"ph\":\"M\",\"name\":\"thread_name\"")
        .raw(track_places_[i])
        .raw("0.000,\"args\":{\"name\":");
    json_.text(slices_.tracks()[i].name).raw("}}");
    json_.event("{\"ph\":\"M\",\"name\":\"thread_sort_index\"")
        .raw(track_places_[i])
        .raw("0.000,\"args\":{\"sort_index\":");
    json_.number(slices_.tracks()[i].sort_index).raw("}}");
    events_ += 2;
  }
}

void SliceWriter::write_marks() {
  for (uint32_t row = 0; row < trace_.marks.size(); ++row) {
    if (trace_.marks.is_step[row]) continue;
    json_.event("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":");
    json_.text(trace_.strings[trace_.marks.name[row]])
        .raw(track_places_[slices_.thread_track(trace_.marks.thread[row])]);
    json_.micros(trace_.marks.time_ns[row] - base_ns_)
        .raw(",\"args\":{\"value\":")
        .signed_number(trace_.marks.value[row])
        .raw("}}");
    ++events_;
  }
}

void SliceWriter::begin(const Slice& slice, std::string_view category, std::string_view quoted_name) {
  json_.event("{\"ph\":\"X\",\"cat\":\"")
      .raw(category)
      .raw("\",\"name\":")
      .raw(quoted_name)
      .raw(track_places_[slice.track]);
  json_.micros(slice.start - base_ns_).raw(",\"dur\":").micros(slice.end - slice.start).raw(",\"args\":{");
  ++events_;
}

void SliceWriter::write_slice(const Slice& slice) {
  switch (slice.kind) {
    case SliceKind::kStep:
      begin(slice, "user_annotation",
            json_string("ProfilerStep#" + std::to_string(trace_.marks.value[slice.row])));
      json_.raw("}}");
      break;
    case SliceKind::kRecordParamComms:
      return write_record_param_comms(slice);
    case SliceKind::kCall:
      return write_call(slice);
    case SliceKind::kKernel:
      return write_kernel(slice);
    case SliceKind::kOtherKernel:
      return write_other_kernel(slice);
    case SliceKind::kLaunch:
      return write_launch(slice);
    case SliceKind::kChannel:
      return write_channel(slice);
    case SliceKind::kProxyOp:
      return write_proxy_op(slice);
    case SliceKind::kProxyStep:
      return write_proxy_step(slice);
    case SliceKind::kProxyCtrl:
      return write_proxy_ctrl(slice);
    case SliceKind::kNetEvent:
      return write_net_event(slice);
  }
}

// Whether a launch bears the op's correlation. Of several ops in one launch the first has it; HTA drops kernels that no
// host event has, so the host events of the others bear theirs.
bool SliceWriter::has_own_launch(uint32_t op) const {
  auto first = op_by_launch_.find(trace_.ops.launched_ns[op]);
  return first != op_by_launch_.end() && first->second == op;
}

void SliceWriter::unfinished(int64_t end_ns) {
  if (end_ns == 0) json_.raw(",\"unfinished\":true");
}

void SliceWriter::write_counts(uint32_t op, const OpText& text) {
  uint64_t count = trace_.ops.count[op];
  json_.raw(text.before_counts).raw(",\"In msg nelems\":").number(count * text.in_factor);
  json_.raw(",\"Out msg nelems\":").number(count * text.out_factor).raw(text.group);
}

// `Seq` and `Comms Id` are PyTorch's and only written where they are; ours have keys of their own.
void SliceWriter::write_identity(uint32_t op) {
  const model::OpTable& ops = trace_.ops;
  if (torch_seq_[op] != 0)
    json_.raw(",\"Seq\":").signed_number(torch_seq_[op]).raw(",\"Comms Id\":").number(torch_ids_[op]);
  json_.raw(texts_.of(op).comms_id).raw(ops.peer[op] >= 0 ? ":p2p:" : ":coll:");
  if (ops.index[op] == model::kNoIndex)
    json_.raw("replay\"");
  else
    json_.number(ops.index[op]).raw("\"");
  if (ops.seq[op] != model::kNoSeq) json_.raw(",\"lockstep seq\":").number(ops.seq[op]);
}

void SliceWriter::write_record_param_comms(const Slice& slice) {
  const model::OpTable& ops = trace_.ops;
  uint32_t op = slice.row;
  const OpText& text = texts_.of(op);
  begin(slice, "cpu_op", "\"record_param_comms\"");
  json_.raw("\"External id\":")
      .number(first_correlation_ + op)
      .raw(",\"Record function id\":")
      .number(first_correlation_ + op)
      .raw(",");
  write_counts(op, text);
  json_.raw(text.global_ranks)
      .raw(",\"Rank\":")
      .signed_number(ops.peer[op] >= 0 ? ops.peer[op] : text.rank_argument);
  if (int32_t peer = ops.peer[op]; peer >= 0 && static_cast<size_t>(peer) < text.ranks.size()) {
    bool send = text.before_counts.starts_with("\"Collective name\":\"send\"");
    json_.raw(send ? ",\"Dst Rank\":" : ",\"Src Rank\":")
        .signed_number(text.ranks[static_cast<size_t>(peer)]);
  }
  write_identity(op);
  json_.raw(text.plan).raw(",\"lockstep bytes\":").number(ops.bytes[op]);
  const bool has_kernel = ops.gpu_start_ns[op] != 0 && ops.gpu_end_ns[op] != 0;
  if (has_kernel && !has_own_launch(op)) json_.raw(",\"correlation\":").number(first_correlation_ + op);
  json_.raw("}}");
  if (!has_kernel) {
    const Track& track = slices_.tracks()[slice.track];
    if (rank_keys_[op] != 0) flows_.add(rank_keys_[op], slice.start, track.pid, track.tid);
  } else if (slice.start < ops.gpu_start_ns[op]) {
    host_to_gpu(slice, first_correlation_ + op, 's');
  }
}

void SliceWriter::host_to_gpu(const Slice& slice, uint64_t correlation, char phase) {
  json_.event(phase == 's' ? "{\"ph\":\"s\"" : "{\"ph\":\"f\",\"bp\":\"e\"")
      .raw(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
  json_.number(correlation).raw(track_places_[slice.track]).micros(slice.start - base_ns_).raw("}");
  ++events_;
}

void SliceWriter::write_kernel(const Slice& slice) {
  const model::OpTable& ops = trace_.ops;
  uint32_t op = slice.row;
  const OpText& text = texts_.of(op);
  const Track& track = slices_.tracks()[slice.track];
  uint32_t task = ops.task[op];
  begin(slice, "kernel", text.kernel_name);
  json_.raw("\"External id\":")
      .number(first_correlation_ + op)
      .raw(",\"device\":")
      .signed_number(track.pid % kPidStride - kGpuPid);
  json_.raw(",\"stream\":").signed_number(track.tid).raw(",\"correlation\":").number(first_correlation_ + op);
  json_.raw(",\"grid\":[").number(ops.channels[op]).raw(",1,1],\"block\":[");
  json_.number(task < trace_.tasks.size() ? trace_.tasks.warps[task] * 32u : 0).raw(",1,1],");
  write_counts(op, text);
  write_identity(op);
  json_.raw(text.plan).raw(",\"lockstep gpu_source\":\"").raw(model::gpu_source_name(ops.gpu_source[op]));
  json_.raw("\"");
  if (ops.gpu_error_ns[op] >= 0) json_.raw(",\"lockstep gpu_error_ns\":").signed_number(ops.gpu_error_ns[op]);
  json_.raw("}}");
  if (int64_t host = host_interval(trace_, op).start; host > 0 && host < slice.start)
    host_to_gpu(slice, first_correlation_ + op, 'f');
  if (rank_keys_[op] != 0) flows_.add(rank_keys_[op], slice.start, track.pid, track.tid);
}

void SliceWriter::write_other_kernel(const Slice& slice) {
  const model::KernelTable& kernels = trace_.kernels;
  const uint32_t row = slice.row;
  const bool is_copy = kernels.kind[row] == static_cast<uint8_t>(model::KernelKind::kCopy);
  const Track& track = slices_.tracks()[slice.track];
  begin(slice, is_copy ? "gpu_memcpy" : "kernel", json_string(trace_.strings[kernels.name[row]]));
  json_.raw("\"device\":").signed_number(track.pid % kPidStride - kGpuPid);
  json_.raw(",\"stream\":").signed_number(track.tid);
  if (kernels.graph[row] != 0)
    json_.raw(",\"graph id\":")
        .number(kernels.graph[row])
        .raw(",\"graph node id\":")
        .number(kernels.graph_node[row]);
  if (kernels.bytes[row] != 0) json_.raw(",\"bytes\":").number(kernels.bytes[row]);
  const uint32_t launch = kernels.launch[row];
  const bool is_launched = launch < trace_.launches.size();
  if (is_launched) json_.raw(",\"correlation\":").number(launch_correlation(launch));
  json_.raw("}}");
  if (is_launched && arrow_[launch] == row) host_to_gpu(slice, launch_correlation(launch), 'f');
}

void SliceWriter::write_launch(const Slice& slice) {
  const uint32_t row = slice.row;
  const bool is_graph = trace_.launches.kind[row] == static_cast<uint8_t>(model::LaunchKind::kGraph);
  begin(slice, "cuda_driver", is_graph ? "\"cuGraphLaunch\"" : "\"cuLaunchKernel\"");
  json_.raw("\"driver correlation\":").number(trace_.launches.correlation[row]);
  if (arrow_[row] != model::kNoRow) json_.raw(",\"correlation\":").number(launch_correlation(row));
  unfinished(trace_.launches.end_ns[row]);
  json_.raw("}}");
  if (arrow_[row] != model::kNoRow) host_to_gpu(slice, launch_correlation(row), 's');
}

void SliceWriter::write_call(const Slice& slice) {
  const model::CallTable& calls = trace_.calls;
  uint32_t row = slice.row, shape = calls.shape[row];
  uint8_t kind = calls.kind[row];
  bool launch = kind == model::number(model::EventKind::kKernelLaunch);
  const std::string& event_name = event_names_[std::min<size_t>(kind, model::kEventKinds - 1)];
  if (launch) {
    begin(slice, "cuda_runtime", kLaunchName);
  } else {
    begin(slice, "nccl", shape < call_names_.size() ? call_names_[shape] : event_name);
  }
  json_.raw("\"event\":").raw(event_name);
  if (auto op = launch ? op_by_launch_.find(calls.start_ns[row]) : op_by_launch_.end();
      op != op_by_launch_.end()) {
    json_.raw(",\"External id\":")
        .number(first_correlation_ + op->second)
        .raw(",\"correlation\":")
        .number(first_correlation_ + op->second);
  }
  if (calls.count[row] != 0) json_.raw(",\"count\":").number(calls.count[row]);
  if (calls.depth[row] != 0) json_.raw(",\"depth\":").signed_number(calls.depth[row]);
  unfinished(calls.end_ns[row]);
  json_.raw("}}");
}

void SliceWriter::write_channel(const Slice& slice) {
  const model::ChannelTable& channels = trace_.channels;
  uint32_t row = slice.row, task = channels.task[row];
  bool phase = channels.kind[row] == model::number(model::EventKind::kKernelPhase);
  std::string_view name = "\"KernelCh\"";
  if (phase) {
    name = kPhases[std::min<size_t>(channels.phase[row], std::size(kPhases) - 1)];
  } else if (task < trace_.tasks.size() && trace_.tasks.shape[task] < call_names_.size()) {
    name = call_names_[trace_.tasks.shape[task]];
  }
  begin(slice, "kernel_channel", name);
  json_.raw("\"gpu_start\":")
      .number(channels.gpu_start[row])
      .raw(",\"gpu_stop\":")
      .number(channels.gpu_stop[row]);
  unfinished(channels.stop_seen_ns[row]);
  json_.raw("}}");
}

void SliceWriter::write_proxy_op(const Slice& slice) {
  const model::ProxyOpTable& ops = trace_.proxy_ops;
  uint32_t row = slice.row;
  begin(slice, "proxy_op", ops.is_send[row] ? "\"send\"" : "\"receive\"");
  json_.raw("\"rank\":").signed_number(ops.rank[row]).raw(",\"peer\":").signed_number(ops.peer[row]);
  json_.raw(",\"steps\":")
      .signed_number(ops.steps[row])
      .raw(",\"chunk_size\":")
      .signed_number(ops.chunk_size[row]);
  if (ops.progress_ns[row] != 0)
    json_.raw(",\"first progress after us\":").micros(ops.progress_ns[row] - ops.start_ns[row]);
  unfinished(ops.end_ns[row]);
  json_.raw("}}");
}

// The waits, each until the next one that happened. A send waits for the GPU, for the peer, for the network; a receive
// is posted, waits for the data, is flushed, waits for the GPU.
void SliceWriter::write_proxy_step(const Slice& slice) {
  const model::ProxyStepTable& steps = trace_.proxy_steps;
  static constexpr std::string_view kSend[] = {
      ",\"posting us\":", ",\"GPU wait us\":", ",\"peer wait us\":", ",\"network us\":"};
  static constexpr std::string_view kReceive[] = {
      ",\"posting us\":", ",\"receive wait us\":", ",\"flush us\":", ",\"GPU wait us\":"};
  uint32_t row = slice.row;
  bool send = steps.is_send[row] != 0;
  begin(slice, "proxy_step", send ? "\"send step\"" : "\"receive step\"");
  json_.raw("\"step\":").signed_number(steps.step[row]).raw(",\"bytes\":").number(steps.bytes[row]);
  const int64_t times[] = {steps.start_ns[row], steps.wait1_ns[row], steps.wait2_ns[row], steps.wait3_ns[row],
                           steps.end_ns[row]};
  for (size_t from = 0, to = 1; to < std::size(times); ++to) {
    if (times[to] == 0) continue;
    json_.raw(send ? kSend[from] : kReceive[from]).micros(times[to] - times[from]);
    from = to;
  }
  if (steps.peer_waits[row] != 0) json_.raw(",\"peer_waits\":").number(steps.peer_waits[row]);
  unfinished(steps.end_ns[row]);
  json_.raw("}}");
}

void SliceWriter::write_proxy_ctrl(const Slice& slice) {
  const model::ProxyCtrlTable& ctrls = trace_.proxy_ctrls;
  begin(slice, "proxy_ctrl", proxy_state(ctrls.first_state[slice.row]));
  json_.raw("\"appended\":").number(ctrls.appended[slice.row]);
  unfinished(ctrls.end_ns[slice.row]);
  json_.raw("}}");
}

void SliceWriter::write_net_event(const Slice& slice) {
  const model::NetEventTable& events = trace_.net_events;
  uint32_t row = slice.row;
  int64_t type = events.id[row] >> 16;
  begin(slice, "net", type == 1 ? "\"IB\"" : type == 2 ? "\"socket\"" : "\"network\"");
  json_.raw("\"bytes\":").number(events.bytes[row]).raw(",\"device\":").signed_number(events.device[row]);
  json_.raw(",\"queue pair or socket\":")
      .signed_number(events.qp[row])
      .raw(",\"opcode\":")
      .signed_number(events.opcode[row]);
  unfinished(events.end_ns[row]);
  json_.raw("}}");
}

}  // namespace lockstep::exporters::chrome_json
