// SPDX-License-Identifier: Apache-2.0
// One dump of PyTorch's Flight Recorder: what a rank issued last, oldest first, versions 1.1 to 2.10, pickle
// or JSON. A dump names neither its rank nor its host nor when it was written.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::readers::flight_recorder {

// A process group.
struct Group {
  std::string name, description;
  std::vector<int32_t> ranks;  // global, in the group's order; empty: unknown
};

enum class Completion : uint8_t {
  kUnknown,    // enqueued; whether it runs is not recorded
  kStarted,    // seen to run, not to end
  kCompleted,  // seen to have ended
};

struct Entry {
  uint32_t group = 0;        // of Dump::groups
  std::string func;          // "AllReduce", "Send"; as PyTorch calls it where NCCL has no word
  std::string datatype;      // NCCL's spelling; empty unknown
  int64_t seq = -1;          // of collectives of the group, equal on all ranks; -1 unknown
  int64_t p2p_seq = -1;      // this rank's own
  uint64_t in = 0, out = 0;  // elements of its tensors
  uint64_t count = 0;        // elements of one rank, which all ranks have in common; 0 where they may differ
  int32_t peer = -1;         // rank in the group, of a send or receive; -1 unknown
  bool is_p2p = false;
  bool closes = false;   // a coalesced group, whose members may be the entries before it
  bool retired = false;  // the watchdog has dropped it
  Completion completion = Completion::kUnknown;
  int64_t created_ns = 0;    // ns since the Unix epoch, host's clock
  int64_t started_ns = 0;    // when the watchdog noticed, at most a poll after the fact; 0 never
  int64_t completed_ns = 0;  // likewise
  int64_t timeout_ns = 0;    // 0 unknown
  uint32_t place = 0;        // of Dump::places
};

struct Dump {
  std::string path;
  int32_t rank = -1;            // global, from the file's name; -1 it has none
  std::string version;          // of the format, "2.10"
  std::string library_version;  // "2.28.9"; empty unknown
  std::vector<Group> groups;
  std::vector<Entry> entries;
  std::vector<std::string> places = {""};  // where the program called them; the first: unknown
  uint64_t overwritten = 0;                // older entries that the ring has lost
  uint64_t bad_entries = 0;                // that are no entries, or are there already
  uint64_t impossible = 0;  // entries and groups that no recorder writes so: the dump is damaged
  uint64_t any_source = 0;  // receives that name no sender; not among the entries
  std::string cut;          // why it ends early; empty: it is whole
  int64_t modified_ns = 0;  // the file's own time
  int64_t last_ns = 0;      // the latest time in it
};

// The error says what the file is not.
Result<Dump> read_dump(const std::string& path);

}  // namespace lockstep::readers::flight_recorder
