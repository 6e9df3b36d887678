// SPDX-License-Identifier: Apache-2.0
// One event of a profiler trace, of the kinds that say something about communication or the GPU. The others,
// most of a file, are told apart by their first keys and never parsed.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::readers::kineto {

// What an event says that is of use here, by its phase, category and name.
enum class EventKind : uint8_t {
  kOther,
  kComms,      // record_param_comms: PyTorch calls a communication operation
  kKernel,     // on the GPU
  kCopy,       // memcpy or memset
  kLaunch,     // the runtime's or driver's call that launches kernels
  kFlow,       // begin of an arrow from a launch to the GPU
  kStep,       // ProfilerStep#N
  kLabel,      // tells which pid is the process' own
  kThread,     // names a thread
  kWindowEnd,  // the profiler stopped
};

// Looks at the keys of an event up to the last that is needed. Nothing: it is no object of a kind that any
// writer makes.
struct EventHead {
  EventKind kind = EventKind::kOther;
  bool is_read = false;   // its phase, and its category or name, were found
  bool is_timed = false;  // it has a begin and a length
};
// `event` is a whole object with its braces. It is not parsed, so a head may be read of what is no JSON.
EventHead head_of(std::string_view event);

// Texts are valid until the next parse. What is absent is empty, kNone or -1.
// One event as parsed, whatever its kind: a kind fills in what it has.
struct Event {
  static constexpr int64_t kNone = INT64_MIN;
  std::string_view name;
  int64_t ts_ns = kNone, dur_ns = 0;  // relative to the file's base time
  int64_t pid = kNone, tid = kNone;
  int64_t flow = kNone;    // `id`
  std::string_view label;  // kLabel, kThread
  // args
  int64_t external = kNone, correlation = kNone;
  int64_t device = kNone, stream = kNone, graph = 0, graph_node = 0;
  std::string_view collective, dtype, group_name, group_description, group_ranks, in_split, out_split;
  uint64_t in = 0, out = 0;
  int64_t group_size = -1, rank_start = -1, rank_stride = -1, rank = -1, source = -1, target = -1, seq = -1;
  std::optional<uint64_t> comms_id;
  std::optional<bool> is_async;
};

// A group as `distributedInfo` lists it.
struct GroupConfig {
  std::string name, description;
  std::string ranks;  // a list, or a text that may be cut
  int64_t size = -1;
};
// `distributedInfo` of the file: what PyTorch says of the process and its groups. -1 and empty: it does not
// say.
struct DistributedInfo {
  int64_t rank = -1, world = -1;
  std::string nccl_version;
  std::vector<GroupConfig> groups;
};

// Parses with buffers of its own. One thread.
class EventParser {
 public:
  EventParser();
  ~EventParser();
  EventParser(const EventParser&) = delete;
  EventParser& operator=(const EventParser&) = delete;

  // `text` has EventStream::kPadding readable bytes behind it. Nothing: it is no JSON.
  std::optional<Event> event(std::string_view text, EventKind kind);
  std::optional<DistributedInfo> distributed_info(std::string_view text);
  // `name` of the devices, by their place.
  std::vector<std::string> device_names(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "4345709178959.866", microseconds, as ns without a detour through floating point; nothing: no number, or
// too large.
std::optional<int64_t> parse_microseconds(std::string_view text);

}  // namespace lockstep::readers::kineto
