// SPDX-License-Identifier: Apache-2.0
// What each slice of a timeline says, in which words and in which order: the same for every format. `Writer`
// puts it into the bytes of one; it has
//
//   begin(slice, category, word)                 a slice named by a word of `words`
//   begin_unnamed(slice, category, text)         ... by a name that hardly any other has
//   number, signed_number, time, text, flag      an argument of the slice
//   fixed(list)                                  arguments that many slices share
//   operation(hash, kind, index)                 the argument kOperation: hash, ":coll:" or ":p2p:", index or
//                                                "replay"
//   grid(blocks, threads)                        the arguments kGrid and kBlock
//   end_arguments()
//   arrow(slice, correlation, arrives)           from the host to the GPU; the slice is where it begins or
//                                                ends
//   same_operation(slice, key)                   one operation on all its ranks: equal keys are one
//   end()
//   instant(track, text, time_ns, value)
//
// One thread. `words` grows while slices are described.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exporters/common/arguments.h"
#include "exporters/common/operation_facts.h"
#include "exporters/common/operation_words.h"
#include "exporters/common/process_slices.h"
#include "model/event_kind.h"
#include "model/names/op_names.h"
#include "model/names/operation_size.h"
#include "model/torch/torch_groups.h"
#include "model/trace.h"

namespace lockstep::exporters::common {

enum class Category : uint8_t {
#define CATEGORY(id, text) id,
#include "exporters/common/categories.def"
#undef CATEGORY
};
inline constexpr std::string_view kCategories[] = {
#define CATEGORY(id, text) text,
#include "exporters/common/categories.def"
#undef CATEGORY
};
constexpr std::string_view category_text(Category category) {
  return kCategories[static_cast<size_t>(category)];
}

// Describes the slices of one process. The writer is a template argument, so that an argument of a slice
// costs no virtual call. References outlive the object.
template <class Writer>
class SliceDescriber {
 public:
  SliceDescriber(const model::Trace& trace, ProcessSlices& slices, uint64_t first_correlation,
                 model::StringPool& words, Writer& writer)
      : trace_(trace),
        slices_(slices),
        facts_(trace, first_correlation),
        writer_(writer),
        words_(words),
        operations_(trace, words) {
    for (uint32_t i = 0; i < trace.shapes.size(); ++i)
      call_names_.push_back(words.intern(model::api_name(trace, i, false)));
    for (uint8_t kind = 0; kind < model::kEventKinds; ++kind)
      event_names_.push_back(words.intern(model::event_name(kind)));
    own_names_.assign(trace.strings.size(), kUnset);
    for (uint32_t i = 0; i < trace.splits.size(); ++i) split_of_op_.emplace(trace.splits.op[i], i);
  }

  // One slice: begin, its arguments in a fixed order, arrows, end. The slice is one of `slices`, of this
  // trace.
  void describe(const Slice& slice) {
    switch (slice.kind) {
      case SliceKind::kStep:
        writer_.begin_unnamed(slice, Category::kAnnotation,
                              "ProfilerStep#" + std::to_string(trace_.marks.value[slice.row]));
        writer_.end_arguments();
        break;
      case SliceKind::kRecordParamComms:
        record_param_comms(slice);
        break;
      case SliceKind::kCall:
        call(slice);
        break;
      case SliceKind::kKernel:
        kernel(slice);
        break;
      case SliceKind::kOtherKernel:
        other_kernel(slice);
        break;
      case SliceKind::kLaunch:
        launch(slice);
        break;
      case SliceKind::kRange:
        range(slice);
        break;
      case SliceKind::kChannel:
        channel(slice);
        break;
      case SliceKind::kProxyOp:
        proxy_op(slice);
        break;
      case SliceKind::kProxyStep:
        proxy_step(slice);
        break;
      case SliceKind::kProxyCtrl:
        proxy_ctrl(slice);
        break;
      case SliceKind::kNetEvent:
        net_event(slice);
        break;
    }
    writer_.end();
  }

  // Marks that are no steps.
  void describe_instants() {
    for (uint32_t row = 0; row < trace_.marks.size(); ++row) {
      if (trace_.marks.is_step[row]) continue;
      writer_.instant(slices_.thread_track(trace_.marks.thread[row]), trace_.strings[trace_.marks.name[row]],
                      trace_.marks.time_ns[row], trace_.marks.value[row]);
    }
  }

 private:
  static constexpr model::StringId kUnset = 0xffffffff;

  // A name of the program's own, made a word when it is first used.
  struct Literal {
    std::string_view text;
    model::StringId word = kUnset;
  };
  model::StringId word(Literal& literal) {
    if (literal.word == kUnset) literal.word = words_.intern(literal.text);
    return literal.word;
  }

  model::StringId own_name(model::StringId text) {
    model::StringId& name = own_names_[text];
    if (name == kUnset) name = words_.intern(trace_.strings[text]);
    return name;
  }

  void unfinished(int64_t end_ns) {
    if (end_ns == 0) writer_.flag(Argument::kUnfinished);
  }

  void counts(uint32_t op, const OperationWords& words) {
    model::Elements elements{trace_.ops.in_count[op], trace_.ops.out_count[op]};
    if (elements.in == 0 && elements.out == 0)
      elements = model::elements_of(words.func, trace_.ops.count[op], words.group_size);
    writer_.fixed(words.what);
    writer_.number(Argument::kInElements, elements.in);
    writer_.number(Argument::kOutElements, elements.out);
    splits(op, words);
    writer_.fixed(words.group);
  }

  void splits(uint32_t op, const OperationWords& words) {
    const auto split = split_of_op_.find(op);
    if (split == split_of_op_.end()) return writer_.fixed(words.even_splits);
    for (const auto& [argument, text] :
         {std::pair(Argument::kUnevenIn, trace_.splits.in_split[split->second]),
          std::pair(Argument::kUnevenOut, trace_.splits.out_split[split->second])})
      writer_.text(argument, text != 0 ? own_name(text) : word(even_));
  }

  // `Seq` and `Comms Id` are PyTorch's and only written where they are known; ours have keys of their own. A
  // tool that joins files by PyTorch's would else join by a number that means something different.
  void identity(uint32_t op, const OperationWords& words) {
    const model::OpTable& ops = trace_.ops;
    if (model::has_torch_seq(trace_, op)) writer_.signed_number(Argument::kTorchSeq, ops.torch_seq[op]);
    if (ops.torch_comms_id[op] != 0) writer_.number(Argument::kCommsId, ops.torch_comms_id[op]);
    if (facts_.has_same_index(op))
      writer_.operation(words.comm_hash, ops.peer[op] >= 0 ? ":p2p:" : ":coll:", ops.index[op]);
    if (ops.seq[op] != model::kNoSeq) writer_.number(Argument::kSeq, ops.seq[op]);
  }

  // The event under which PyTorch's tools look for communication on the host, with its exact name and keys.
  void record_param_comms(const Slice& slice) {
    const model::OpTable& ops = trace_.ops;
    const uint32_t op = slice.row;
    const OperationWords& words = operations_.of(op);
    writer_.begin(slice, Category::kCpuOp, word(record_param_comms_));
    writer_.number(Argument::kExternalId, facts_.op_correlation(op));
    writer_.number(Argument::kRecordFunctionId, facts_.op_correlation(op));
    counts(op, words);
    writer_.fixed(words.global_ranks);
    if (const int32_t rank = ops.peer[op] >= 0 ? ops.peer[op] : words.rank_argument; rank >= 0)
      writer_.signed_number(Argument::kTorchRank, rank);
    if (int32_t peer = ops.peer[op]; peer >= 0 && static_cast<size_t>(peer) < words.ranks.size()) {
      writer_.signed_number(words.is_send ? Argument::kDestination : Argument::kSource,
                            words.ranks[static_cast<size_t>(peer)]);
    }
    identity(op, words);
    if (model::is_async_known(ops.kind[op], ops.flags[op]))
      writer_.number(Argument::kIsAsync, (ops.flags[op] & model::kFlagAsync) != 0);
    writer_.fixed(words.plan);
    writer_.number(Argument::kMessageBytes, ops.bytes[op]);
    const bool has_kernel = ops.gpu_start_ns[op] != 0 && ops.gpu_end_ns[op] != 0;
    if (has_kernel && !facts_.has_own_launch(op))
      writer_.number(Argument::kCorrelation, facts_.op_correlation(op));
    writer_.end_arguments();
    if (!has_kernel) {
      if (facts_.rank_key(op) != 0) writer_.same_operation(slice, facts_.rank_key(op));
    } else if (slice.start < ops.gpu_start_ns[op]) {
      writer_.arrow(slice, facts_.op_correlation(op), false);
    }
  }

  void place(const Slice& slice) {
    const Track& track = slices_.tracks()[slice.track];
    writer_.signed_number(Argument::kDevice, track.pid % kPidStride - kGpuPid);
    writer_.signed_number(Argument::kStream, track.tid);
  }

  // The operation's GPU work. Its correlation is the operation's own, which the host event bears
  // too, or the call that launched it: so a viewer finds one from the other.
  void kernel(const Slice& slice) {
    const model::OpTable& ops = trace_.ops;
    const uint32_t op = slice.row, task = ops.task[op];
    const OperationWords& words = operations_.of(op);
    writer_.begin(slice, Category::kKernel, words.kernel_name);
    writer_.number(Argument::kExternalId, facts_.op_correlation(op));
    place(slice);
    writer_.number(Argument::kCorrelation, facts_.op_correlation(op));
    writer_.grid(ops.channels[op], task < trace_.tasks.size() ? trace_.tasks.warps[task] * 32u : 0);
    counts(op, words);
    identity(op, words);
    writer_.fixed(words.plan);
    Literal& source = gpu_sources_[std::min<size_t>(ops.gpu_source[op], std::size(gpu_sources_) - 1)];
    if (source.text.empty()) source.text = model::gpu_source_name(ops.gpu_source[op]);
    writer_.text(Argument::kGpuSource, word(source));
    if (ops.gpu_error_ns[op] >= 0) writer_.signed_number(Argument::kGpuError, ops.gpu_error_ns[op]);
    writer_.end_arguments();
    if (int64_t host = host_interval(trace_, op).start; host > 0 && host < slice.start)
      writer_.arrow(slice, facts_.op_correlation(op), true);
    if (facts_.rank_key(op) != 0) writer_.same_operation(slice, facts_.rank_key(op));
  }

  void other_kernel(const Slice& slice) {
    const model::KernelTable& kernels = trace_.kernels;
    const uint32_t row = slice.row;
    const bool is_copy = kernels.kind[row] == static_cast<uint8_t>(model::KernelKind::kCopy);
    writer_.begin(slice, is_copy ? Category::kCopy : Category::kKernel, own_name(kernels.name[row]));
    place(slice);
    if (kernels.graph[row] != 0) {
      writer_.number(Argument::kGraph, kernels.graph[row]);
      writer_.number(Argument::kGraphNode, kernels.graph_node[row]);
    }
    if (kernels.bytes[row] != 0) writer_.number(Argument::kBytes, kernels.bytes[row]);
    const uint32_t launch = kernels.launch[row];
    const bool is_launched = launch < trace_.launches.size();
    if (is_launched) writer_.number(Argument::kCorrelation, facts_.launch_correlation(launch));
    writer_.end_arguments();
    if (is_launched && facts_.first_kernel(launch) == row)
      writer_.arrow(slice, facts_.launch_correlation(launch), true);
  }

  void launch(const Slice& slice) {
    const uint32_t row = slice.row;
    const bool is_graph = trace_.launches.kind[row] == static_cast<uint8_t>(model::LaunchKind::kGraph);
    writer_.begin(slice, Category::kDriver, word(is_graph ? graph_launch_ : kernel_launch_));
    writer_.number(Argument::kDriverCorrelation, trace_.launches.correlation[row]);
    const bool has_arrow = facts_.first_kernel(row) != model::kNoRow;
    if (has_arrow) writer_.number(Argument::kCorrelation, facts_.launch_correlation(row));
    unfinished(trace_.launches.end_ns[row]);
    writer_.end_arguments();
    if (has_arrow) writer_.arrow(slice, facts_.launch_correlation(row), false);
  }

  void range(const Slice& slice) {
    const model::RangeTable& ranges = trace_.ranges;
    const model::StringId name = ranges.name[slice.row], domain = ranges.domain[slice.row];
    writer_.begin(slice, Category::kAnnotation, name != 0 ? own_name(name) : word(range_));
    if (domain != 0) writer_.text(Argument::kDomain, own_name(domain));
    unfinished(ranges.end_ns[slice.row]);
    writer_.end_arguments();
  }

  void call(const Slice& slice) {
    const model::CallTable& calls = trace_.calls;
    const uint32_t row = slice.row, shape = calls.shape[row];
    const uint8_t kind = calls.kind[row];
    const bool is_launch = kind == model::number(model::EventKind::kKernelLaunch);
    const model::StringId event = event_names_[std::min<size_t>(kind, model::kEventKinds - 1)];
    if (is_launch) {
      writer_.begin(slice, Category::kRuntime, word(nccl_launch_));
    } else {
      writer_.begin(slice, Category::kNccl, shape < call_names_.size() ? call_names_[shape] : event);
    }
    writer_.text(Argument::kEvent, event);
    if (const uint32_t op = is_launch ? facts_.op_of_launch(calls.start_ns[row]) : model::kNoRow;
        op != model::kNoRow) {
      writer_.number(Argument::kExternalId, facts_.op_correlation(op));
      writer_.number(Argument::kCorrelation, facts_.op_correlation(op));
    }
    if (calls.count[row] != 0) writer_.number(Argument::kCount, calls.count[row]);
    if (calls.depth[row] != 0) writer_.signed_number(Argument::kDepth, calls.depth[row]);
    unfinished(calls.end_ns[row]);
    writer_.end_arguments();
  }

  void channel(const Slice& slice) {
    const model::ChannelTable& channels = trace_.channels;
    const uint32_t row = slice.row, task = channels.task[row];
    const bool is_phase = channels.kind[row] == model::number(model::EventKind::kKernelPhase);
    model::StringId name;
    if (is_phase) {
      name = word(phases_[std::min<size_t>(channels.phase[row], std::size(phases_) - 1)]);
    } else if (task < trace_.tasks.size() && trace_.tasks.shape[task] < call_names_.size()) {
      name = call_names_[trace_.tasks.shape[task]];
    } else {
      name = word(kernel_channel_);
    }
    writer_.begin(slice, Category::kChannel, name);
    writer_.number(Argument::kGpuStart, channels.gpu_start[row]);
    writer_.number(Argument::kGpuStop, channels.gpu_stop[row]);
    unfinished(channels.stop_seen_ns[row]);
    writer_.end_arguments();
  }

  void proxy_op(const Slice& slice) {
    const model::ProxyOpTable& ops = trace_.proxy_ops;
    const uint32_t row = slice.row;
    writer_.begin(slice, Category::kProxyOp, word(ops.is_send[row] ? send_ : receive_));
    writer_.signed_number(Argument::kRank, ops.rank[row]);
    writer_.signed_number(Argument::kPeer, ops.peer[row]);
    writer_.signed_number(Argument::kSteps, ops.steps[row]);
    writer_.signed_number(Argument::kChunkSize, ops.chunk_size[row]);
    if (ops.progress_ns[row] != 0)
      writer_.time(Argument::kFirstProgress, ops.progress_ns[row] - ops.start_ns[row]);
    unfinished(ops.end_ns[row]);
    writer_.end_arguments();
  }

  // The waits, each until the next one that happened. A send waits for the GPU, for the peer, for the
  // network; a receive is posted, waits for the data, is flushed, waits for the GPU.
  void proxy_step(const Slice& slice) {
    static constexpr Argument kSend[] = {Argument::kPosting, Argument::kGpuWait, Argument::kPeerWait,
                                         Argument::kNetwork};
    static constexpr Argument kReceive[] = {Argument::kPosting, Argument::kReceiveWait, Argument::kFlush,
                                            Argument::kGpuWait};
    const model::ProxyStepTable& steps = trace_.proxy_steps;
    const uint32_t row = slice.row;
    const bool send = steps.is_send[row] != 0;
    writer_.begin(slice, Category::kProxyStep, word(send ? send_step_ : receive_step_));
    writer_.signed_number(Argument::kStep, steps.step[row]);
    writer_.number(Argument::kBytes, steps.bytes[row]);
    const int64_t times[] = {steps.start_ns[row], steps.wait1_ns[row], steps.wait2_ns[row],
                             steps.wait3_ns[row], steps.end_ns[row]};
    for (size_t from = 0, to = 1; to < std::size(times); ++to) {
      if (times[to] == 0) continue;
      writer_.time(send ? kSend[from] : kReceive[from], times[to] - times[from]);
      from = to;
    }
    if (steps.peer_waits[row] != 0) writer_.number(Argument::kPeerWaits, steps.peer_waits[row]);
    unfinished(steps.end_ns[row]);
    writer_.end_arguments();
  }

  void proxy_ctrl(const Slice& slice) {
    const model::ProxyCtrlTable& ctrls = trace_.proxy_ctrls;
    Literal* name = &proxy_;
    for (auto& [state, literal] : proxy_states_) {
      if (state == ctrls.first_state[slice.row]) name = &literal;
    }
    writer_.begin(slice, Category::kProxyCtrl, word(*name));
    writer_.number(Argument::kAppended, ctrls.appended[slice.row]);
    unfinished(ctrls.end_ns[slice.row]);
    writer_.end_arguments();
  }

  void net_event(const Slice& slice) {
    const model::NetEventTable& events = trace_.net_events;
    const uint32_t row = slice.row;
    const int64_t type = events.id[row] >> 16;
    writer_.begin(slice, Category::kNet, word(type == 1 ? ib_ : type == 2 ? socket_ : network_));
    writer_.number(Argument::kBytes, events.bytes[row]);
    writer_.signed_number(Argument::kNetDevice, events.device[row]);
    writer_.signed_number(Argument::kQueuePair, events.qp[row]);
    writer_.signed_number(Argument::kOpcode, events.opcode[row]);
    unfinished(events.end_ns[row]);
    writer_.end_arguments();
  }

  struct ProxyState {
    uint8_t state;
    Literal literal;
  };

  const model::Trace& trace_;
  ProcessSlices& slices_;
  OperationFacts facts_;
  Writer& writer_;
  model::StringPool& words_;
  OperationWordsTable operations_;
  std::vector<model::StringId> call_names_, event_names_;  // words, by shape and by event kind
  std::vector<model::StringId> own_names_;                 // words, by the trace's text; kUnset: not met yet
  std::unordered_map<uint32_t, uint32_t> split_of_op_;     // rows of splits
  Literal even_{"[]"};
  Literal record_param_comms_{"record_param_comms"}, kernel_channel_{"KernelCh"}, proxy_{"proxy"},
      range_{"range"};
  Literal nccl_launch_{"cudaLaunchKernelExC"};  // what NCCL calls to launch; HTA counts launches by this name
  Literal kernel_launch_{"cuLaunchKernel"}, graph_launch_{"cuGraphLaunch"};
  Literal send_{"send"}, receive_{"receive"}, send_step_{"send step"}, receive_step_{"receive step"};
  Literal ib_{"IB"}, socket_{"socket"}, network_{"network"};
  Literal phases_[3] = {{"initial sync"}, {"compute"}, {"final sync"}};
  Literal gpu_sources_[9];  // by GpuTimeSource; the last for numbers that are none
  ProxyState proxy_states_[4] = {{13, {"idle"}}, {14, {"active"}}, {15, {"sleep"}}, {17, {"append"}}};
};

}  // namespace lockstep::exporters::common
