// SPDX-License-Identifier: Apache-2.0
// What one trace of the profiler holds of communication, read event by event, before anything is put
// together. Kernels go into the trace's own table at once, as they may be millions; all else is far less.
//
// Times are ns since the file's base time, which may stand behind the events.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/trace.h"
#include "readers/common/kernel_links.h"
#include "readers/kineto/event.h"
#include "readers/kineto/event_stream.h"

namespace lockstep::readers::kineto {

static_assert(Event::kNone == common::kNoLink);

// A call of a communication operation, as PyTorch records it on the host. `group` is of Recording::groups.
struct CommCall : common::LinkedCall {
  model::StringId datatype = 0;
  uint64_t count = 0;
  uint64_t in = 0, out = 0;                     // elements of its tensors
  model::StringId in_split = 0, out_split = 0;  // as printed; 0 even
  uint64_t comms_id = 0;                        // as it says; 0 it does not
  uint8_t flags = 0;                            // of the model
  int64_t seq = -1;         // of the group, over all functions; of sends and receives, this rank's own
  int64_t peer = -1;        // global rank
  int64_t group_rank = -1;  // own, except: the root's of rooted functions, the peer's of sends and receives
  bool is_p2p = false;
};

// A ProfilerStep#N of the training loop.
struct Step {
  int64_t number = 0, start_ns = 0, tid = 0;
};

// A group as the operations name it.
struct Group {
  std::string name, description, ranks;
  int64_t size = -1, start = -1, stride = -1;
};

// One trace; -1 and empty: it does not say. Counters at the end become losses.
struct Recording {
  std::string path;
  int64_t base_ns = 0;
  std::string host, job;
  int64_t pid = -1;
  std::vector<std::string> devices;
  std::map<int64_t, std::string> thread_names;  // by tid
  bool has_info = false;
  DistributedInfo info;
  std::vector<Group> groups;
  std::vector<CommCall> calls;
  std::vector<common::LinkedKernel> kernels;
  std::vector<common::KernelLaunch> launches;
  std::vector<Step> steps;
  int64_t first_ns = INT64_MAX, last_ns = 0;  // of what was read
  int64_t end_ns = 0;                         // the profiler stopped; 0 unknown
  bool is_whole = false;
  uint64_t events = 0;
  uint64_t bad_events = 0, first_damage = 0;
  uint64_t oversized = 0;
  uint64_t unnamed_calls = 0;    // record_param_comms without arguments, of PyTorch before 2.2
  uint64_t cut_lists = 0;        // of ranks, that no start and stride complete
  uint64_t unplaced_p2p = 0;     // sends and receives that name no peer
  uint64_t wrong_comms_ids = 0;  // that are not those of their groups
};

// Fills trace.kernels (their times relative, `gpu` the device in the process, `op` none) and trace.strings.
// The error says what the file is not.
// `trace` is empty. Several files may be read at once, each into its own trace.
Result<Recording> read_recording(const std::string& path, model::Trace& trace);

// What a file says up to its first event, at the cost of reading no more than that.
// -1 and 0: unknown. What stands behind the first event is not looked at, so a rank named there is missed.
struct Heading {
  int32_t rank = -1;        // of `distributedInfo`, else of the file's name
  int64_t first_ns = 0;     // of its first event that takes time, absolute
  bool has_events = false;  // there is one
  bool has_info = false;    // `distributedInfo`, before them
};
Result<Heading> read_heading(const std::string& path);

// "rank3.json", "trace_3.json", "rank3.1760000000000.pt.trace.json": 3; -1 of the names that the profiler
// makes up alone ("host_4711.1760000000000.pt.trace.json"), and of numbers that end a word ("resnet50.json").
int32_t rank_of_trace_name(const std::string& path);

}  // namespace lockstep::readers::kineto
