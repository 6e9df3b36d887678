// SPDX-License-Identifier: Apache-2.0
// Collects the events of one trace before anything is joined, because calls, kernels and launches that belong
// together lie far apart in the file. Only what communication needs is kept of each; kernel names are
// interned at once, as a trace repeats a few hundred of them a million times.
#include "readers/kineto/recording.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/input_file.h"
#include "base/utf8.h"
#include "model/event_kind.h"
#include "model/limits.h"
#include "model/names/op_names.h"
#include "model/torch/comms_id.h"
#include "model/torch/process_group.h"

namespace lockstep::readers::kineto {
namespace {

using model::KernelWork;
using model::Trace;
using model::work_of_kernel;

// So that the sum of base, begin and length stays below 2^63; and bounds on rows, and on numbers taken for
// ranks.
constexpr int64_t kMostNs = int64_t{1} << 61;
constexpr uint32_t kMostRows = uint32_t{1} << 30;
constexpr int32_t kMostRanksInNames = 100'000;
constexpr size_t kMostSplitText = 4096;  // PyTorch prints 30 numbers

// What PyTorch records beside operations.
bool is_pseudo(std::string_view collective) {
  return collective == "wait" || collective == "init" || collective == "broadcastUniqueNCCLID" ||
         collective == "allgatherUniqueNCCLIDs" || collective == "coalesced";
}

bool is_list_empty(std::string_view list) {
  return list.find_first_of("0123456789") == std::string_view::npos;
}

// A top-level text with its quotes.
std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"') return {};
  return valid_utf8(text.substr(1, text.size() - 2));
}

class Collector {
 public:
  Collector(const std::string& path, const InputFile& file, Trace& trace) : stream_(file), trace_(trace) {
    out_.path = path;
  }

  Result<Recording> read() {
    while (true) {
      const EventStream::Piece piece = stream_.next();
      if (piece.kind == EventStream::Kind::kEnd) break;
      if (piece.kind == EventStream::Kind::kTopLevel)
        take_value(piece);
      else
        take_event(piece);
    }
    if (!is_known_) {
      return Error{ErrorCode::kInvalidInput,
                   stream_.is_object() ? "not a trace of PyTorch's profiler: nothing in it is from one"
                                       : "not a trace of PyTorch's profiler: no JSON object",
                   out_.path};
    }
    out_.is_whole = stream_.is_whole();
    out_.bad_events = stream_.damages();
    out_.first_damage = stream_.first_damage();
    out_.oversized = stream_.oversized();
    return std::move(out_);
  }

 private:
  void take_value(const EventStream::Piece& piece) {
    // Chrome's trace format has other writers. Without a key or an event of this profiler the file is not
    // its.
    is_known_ = is_known_ || piece.key == "schemaVersion" || piece.key == "deviceProperties";
    if (piece.key == "baseTimeNanoseconds") {
      int64_t base = 0;
      const auto [end, error] =
          std::from_chars(piece.text.data(), piece.text.data() + piece.text.size(), base);
      if (error == std::errc{} && base >= 0 && base < kMostNs) out_.base_ns = base;
    } else if (piece.key == "distributedInfo") {
      if (auto info = parser_.distributed_info(piece.text)) {
        out_.has_info = true;
        out_.info = std::move(*info);
      }
    } else if (piece.key == "deviceProperties") {
      out_.devices = parser_.device_names(piece.text);
    } else if (piece.key == "host_name") {
      out_.host = unquoted(piece.text);
    } else if (piece.key == "PT_PROFILER_JOB_NAME") {
      out_.job = unquoted(piece.text);
    }
  }

  void take_event(const EventStream::Piece& piece) {
    const EventHead head = head_of(piece.text);
    // It has borders and no sense: the stream looks for an event inside it before it goes on behind.
    if (!head.is_read) return stream_.reject(piece);
    ++out_.events;
    if (head.kind == EventKind::kOther) return;
    is_known_ = true;
    const auto event = parser_.event(piece.text, head.kind);
    if (!event) return stream_.reject(piece);
    if (head.kind == EventKind::kLabel) {
      // Rows of GPUs have labels as well, under pids of their own.
      if (event->label == "CPU" && event->pid >= 0) out_.pid = event->pid;
      return;
    }
    if (head.kind == EventKind::kThread) return take_thread(*event);
    if (event->ts_ns < 0 || event->ts_ns > kMostNs || event->dur_ns > kMostNs) return stream_.reject(piece);
    if (head.kind == EventKind::kWindowEnd) {
      out_.end_ns = event->ts_ns;
      return;
    }
    out_.first_ns = std::min(out_.first_ns, event->ts_ns);
    out_.last_ns = std::max(out_.last_ns, event->ts_ns + event->dur_ns);
    switch (head.kind) {
      case EventKind::kComms:
        return take_call(*event);
      case EventKind::kKernel:
      case EventKind::kCopy:
        return take_kernel(*event, head.kind == EventKind::kCopy);
      case EventKind::kLaunch:
        if (event->correlation != Event::kNone)
          out_.launches.push_back(
              {event->correlation, false, event->ts_ns, event->ts_ns + event->dur_ns, event->tid});
        return;
      case EventKind::kFlow:
        if (event->flow != Event::kNone)
          out_.launches.push_back({event->flow, true, event->ts_ns, event->ts_ns, event->tid});
        return;
      default:
        return take_step(*event);
    }
  }

  // "thread 4711 (pt_main_thread)"; streams of a GPU have names too.
  void take_thread(const Event& event) {
    const size_t begin = event.label.find('('), end = event.label.rfind(')');
    if (event.label.starts_with("thread ") && begin != std::string_view::npos &&
        end != std::string_view::npos && begin < end)
      out_.thread_names.try_emplace(event.tid, event.label.substr(begin + 1, end - begin - 1));
  }

  void take_step(const Event& event) {
    int64_t number = 0;
    const std::string_view digits = event.name.substr(event.name.find('#') + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    out_.steps.push_back({number, event.ts_ns, event.tid});
  }

  struct KernelName {
    model::StringId id = 0;
    KernelWork work = KernelWork::kNone;
  };
  const KernelName& kernel_name(std::string_view name) {
    const auto known = kernel_names_.find(name);
    if (known != kernel_names_.end()) return known->second;
    return kernel_names_
        .emplace(std::string(name), KernelName{trace_.strings.intern(name), work_of_kernel(name)})
        .first->second;
  }

  void take_kernel(const Event& event, bool is_copy) {
    if (trace_.kernels.size() >= kMostRows) return;
    const KernelName& name = kernel_name(event.name);
    // A kernel that bears the collective's arguments itself is surer than one that is known by its name.
    const bool is_named = !event.collective.empty();
    const bool communicates = !is_copy && (is_named || name.work != KernelWork::kNone);
    const auto kind = is_copy        ? model::KernelKind::kCopy
                      : communicates ? model::KernelKind::kCommunication
                                     : model::KernelKind::kCompute;
    // GPU rows carry the device as pid and the stream as tid.
    const int64_t device = event.device >= 0 ? event.device : event.pid;
    const int64_t stream = event.stream >= 0 ? event.stream : event.tid;
    const uint32_t row =
        trace_.kernels.append({.process = 0,
                               .op = model::kNoRow,
                               .name = name.id,
                               .kind = static_cast<uint8_t>(kind),
                               .gpu = device >= 0 && device <= INT32_MAX ? static_cast<int32_t>(device) : -1,
                               .stream = stream >= 0 ? static_cast<uint64_t>(stream) : 0,
                               .graph = static_cast<uint64_t>(std::max<int64_t>(event.graph, 0)),
                               .graph_node = static_cast<uint64_t>(std::max<int64_t>(event.graph_node, 0)),
                               .start_ns = event.ts_ns,
                               .end_ns = event.ts_ns + event.dur_ns,
                               .launch = model::kNoRow,
                               .correlation = 0,
                               .blocks = 0,
                               .bytes = 0});
    if (!communicates) return;
    const KernelWork work = name.work == KernelWork::kNone ? KernelWork::kAny : name.work;
    out_.kernels.push_back({row, event.external, event.correlation, is_named, work});
  }

  // By all that names the members: one name with two sets of members is two groups.
  uint32_t group_of(const Event& event) {
    auto key = std::tuple(std::string(event.group_name), event.group_size, event.rank_start,
                          event.rank_stride, std::string(event.group_ranks));
    const auto [at, is_new] =
        group_ids_.try_emplace(std::move(key), static_cast<uint32_t>(out_.groups.size()));
    if (is_new) {
      out_.groups.push_back({.name = std::string(event.group_name),
                             .description = std::string(event.group_description),
                             .ranks = std::string(event.group_ranks),
                             .size = event.group_size <= model::kMostRanks ? event.group_size : -1,
                             .start = event.rank_start,
                             .stride = event.rank_stride});
    }
    return at->second;
  }

  // The part of one rank, where that is equal on all.
  static uint64_t count_of(std::string_view func, const Event& event) {
    const auto size = static_cast<uint64_t>(std::max<int64_t>(event.group_size, 1));
    if (func == "AlltoAll") {
      // Parts of unequal size have no count that is the same on all ranks.
      const bool equal = is_list_empty(event.in_split) && is_list_empty(event.out_split);
      return equal && event.in == event.out ? event.in / size : 0;
    }
    uint64_t whole = 0;
    // Counts come from the file, and a product that wraps could look equal.
    if (func == "ReduceScatter" && (__builtin_mul_overflow(event.out, size, &whole) || whole != event.in))
      return 0;
    return model::common_count(func, event.in, event.out);
  }

  void take_call(const Event& event) {
    if (event.collective.empty()) {
      ++out_.unnamed_calls;
      return;
    }
    // They have the form of operations and call nothing on the GPU by themselves.
    if (is_pseudo(event.collective)) return;
    if (out_.pid < 0 && event.pid >= 0) out_.pid = event.pid;
    std::string func = model::nccl_func(event.collective);
    uint64_t whole = 0;
    // Parts of unequal size.
    if (func == "AllGather" && event.group_size > 0 &&
        (__builtin_mul_overflow(event.in, static_cast<uint64_t>(event.group_size), &whole) ||
         whole != event.out))
      func = "AllGatherV";
    CommCall call;
    call.start_ns = event.ts_ns;
    call.end_ns = event.ts_ns + event.dur_ns;
    call.external = event.external;
    call.tid = event.tid;
    call.is_p2p = func == "Send" || func == "Recv";
    call.peer = func == "Send" ? event.target : func == "Recv" ? event.source : -1;
    call.group_rank = event.rank;
    if (call.is_p2p && call.peer < 0 && call.group_rank < 0) {
      ++out_.unplaced_p2p;
      return;
    }
    call.group = group_of(event);
    call.func = trace_.strings.intern(func);
    call.datatype = trace_.strings.intern(model::nccl_dtype(event.dtype));
    call.count = count_of(func, event);
    call.in = event.in;
    call.out = event.out;
    call.in_split = split(event.in_split);
    call.out_split = split(event.out_split);
    if (event.is_async)
      call.flags = static_cast<uint8_t>(model::kFlagAsyncKnown | (*event.is_async ? model::kFlagAsync : 0));
    call.seq = event.seq;
    call.comms_id = event.comms_id.value_or(0);
    if (event.comms_id && event.seq >= 0) check_comms_id(event, call.is_p2p);
    out_.calls.push_back(call);
  }

  model::StringId split(std::string_view text) {
    const bool is_list = !is_list_empty(text) && text.size() <= kMostSplitText;
    return is_list ? trace_.strings.intern(valid_utf8(text)) : 0;
  }

  // It hashes what the arguments say, so it proves that they were read right. A stride that is not said is
  // none or 0; some backends number sends among the collectives.
  void check_comms_id(const Event& event, bool is_p2p) {
    model::CommsTuple tuple{.pg_name = event.group_name,
                            .seq = event.seq,
                            .is_p2p = is_p2p,
                            .start = static_cast<int32_t>(event.rank_start),
                            .stride = static_cast<int32_t>(event.rank_stride),
                            .world = static_cast<int32_t>(event.group_size)};
    if (event.rank_stride < 0) tuple.stride = model::default_stride(tuple.world);
    if (model::comms_id(tuple) == *event.comms_id) return;
    tuple.is_p2p = false;
    out_.wrong_comms_ids += model::comms_id(tuple) != *event.comms_id;
  }

  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  EventStream stream_;
  EventParser parser_;
  Trace& trace_;
  Recording out_;
  bool is_known_ = false;  // something that only this profiler writes
  std::unordered_map<std::string, KernelName, TextHash, std::equal_to<>> kernel_names_;
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t, std::string>, uint32_t> group_ids_;
};

}  // namespace

Result<Recording> read_recording(const std::string& path, Trace& trace) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  return Collector(path, file, trace).read();
}

Result<Heading> read_heading(const std::string& path) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  EventStream stream(file);
  EventParser parser;
  Heading heading;
  int64_t base = 0;
  while (true) {
    const EventStream::Piece piece = stream.next();
    if (piece.kind == EventStream::Kind::kTopLevel) {
      heading.has_info = heading.has_info || piece.key == "distributedInfo";
      if (piece.key == "distributedInfo") {
        // Captures on demand may name another rank.
        if (const auto info = parser.distributed_info(piece.text);
            info && info->nccl_version != "unknown" && info->rank >= 0 && info->rank <= INT32_MAX)
          heading.rank = static_cast<int32_t>(info->rank);
      } else if (piece.key == "baseTimeNanoseconds") {
        std::from_chars(piece.text.data(), piece.text.data() + piece.text.size(), base);
      }
      continue;
    }
    if (!stream.is_object())
      return Error{ErrorCode::kInvalidInput, "not a trace of PyTorch's profiler: no JSON object", path};
    if (piece.kind == EventStream::Kind::kEvent) {
      // Names of processes and threads are no events of the job.
      if (!head_of(piece.text).is_timed) continue;
      heading.has_events = true;
      if (const auto event = parser.event(piece.text, EventKind::kOther);
          event && event->ts_ns >= 0 && event->ts_ns < kMostNs && base >= 0 && base < kMostNs)
        heading.first_ns = base + event->ts_ns;
    }
    break;
  }
  if (heading.rank < 0) heading.rank = rank_of_trace_name(path);
  return heading;
}

int32_t rank_of_trace_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  // Other numbers of names that the profiler makes up are a process and a time; and dates are no ranks.
  const bool is_made_up = name.find(".pt.trace") != std::string::npos;
  const int32_t rank = is_made_up ? model::rank_named_in(name) : model::rank_of_file_name(name);
  return rank < kMostRanksInNames ? rank : -1;
}

}  // namespace lockstep::readers::kineto
