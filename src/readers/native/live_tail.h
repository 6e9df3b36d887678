// SPDX-License-Identifier: Apache-2.0
// What one process file says of the present, read again and again while the process writes it: communicators, the newest
// operations, what is open, and how much there was. A refresh reads the header, and of each thread log what is new: two
// reads of some bytes each where nothing is. It never reads more than kMostChunks a log, so a refresh costs the same
// however large the file is; rates of what was passed over are estimated from what was read.
//
// Only the first look goes through the chunk headers of the whole file (64 bytes in every 32 KiB). One thread.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "format/definitions.h"
#include "format/records.h"
#include "readers/native/chunk_follower.h"
#include "readers/native/tick_clock.h"

namespace lockstep::readers::native {

// The newest operation of one function on one communicator.
struct LiveFunction {
  uint64_t newest = 0;     // NCCL's number
  int64_t started_ns = 0;  // of that one
};
struct LiveComm {
  uint64_t comm_id = 0;  // 0 unknown
  std::string name;
  int32_t rank = -1, ranks = -1;
  bool ended = false;
  std::map<std::string, LiveFunction> functions;  // those that number their operations
};
struct LiveOp {
  std::string func;
  uint32_t comm = format::kNoComm;  // of LiveProcess::comms
  std::optional<uint64_t> number;   // NCCL's, per communicator and function
  int64_t started_ns = 0;
};
struct LiveProcess {
  format::FileHeader header{};  // as last read
  int64_t heartbeat_ns = 0;     // 0: never
  std::string device;           // PCI address, or "cuda:N"; empty unknown
  std::vector<LiveComm> comms;  // by their number in the process
  bool from_start = true;       // everything since the process began was read
  std::optional<LiveOp> last;   // the operation that started last
  std::optional<LiveOp>
      oldest_open;  // of API calls, operations, GPU and network work that have begun and not ended
  size_t open = 0;
  double ops = 0, bytes = 0;  // since the first look; estimated where something was passed over
  uint64_t dropped = 0;       // events that capture had to drop
};

class LiveTail {
 public:
  static constexpr uint32_t kMostChunks = 8;

  // Looks for the first time.
  static Result<std::unique_ptr<LiveTail>> open(const std::string& path);
  // Reads what is new; an error if the file can no longer be read.
  Result<void> refresh();
  const LiveProcess& process() const { return process_; }
  // A time on CLOCK_MONOTONIC of the process' host, on the clock of the process' times.
  int64_t from_monotonic(uint64_t ns) const { return clock_->from_monotonic(ns); }

 private:
  struct Shape {
    std::string func;
    uint32_t element_bytes = 1;
  };
  struct Log {
    std::optional<ChunkFollower> records, definitions;
    std::map<uint32_t, Shape> shapes;
    uint64_t losses_offset = 0;  // in the file, of its loss counters; 0 not found yet
    double calls = 0, tasks = 0, call_bytes = 0, task_bytes = 0;  // read in this refresh
  };
  struct Open {
    uint64_t offset;  // of its record in the file
    uint64_t start;   // ticks
    LiveOp op;
  };
  // A record and where it lies.
  struct Entry {
    const ChunkBuffer& buffer;
    uint32_t unit;
    uint64_t offset, handle;
    template <class T>
    T as() const;
  };

  explicit LiveTail(std::string path) : path_(std::move(path)) {}
  void find_chunks(const InputFile& file);
  std::vector<uint32_t> take_candidates();
  void add_chunk(uint32_t index, const format::ChunkHeader& header);
  void start_logs();  // those that first_look_ holds
  void read_meta(const InputFile& file);
  void add_comm(const format::CommDef& def);
  void read_definitions(const InputFile& file, Log& log);
  void read_records(const InputFile& file, Log& log);
  uint32_t visit(const Entry& entry, Log& log);
  template <class Record>
  void add_call(const Entry& entry, Log& log);
  template <class Record>
  void add_task(const Entry& entry, const Record& record, std::optional<uint64_t> number, Log& log);
  template <class Record>
  void add_part(const Entry& entry, std::string_view what);
  LiveOp note_op(const Log& log, const format::RecordHead& head, uint32_t comm, uint16_t shape,
                 std::optional<uint64_t> number);
  void hold_open(const Entry& entry, const format::RecordHead& head, LiveOp op);
  void close_ended(const InputFile& file);
  void count_dropped(const InputFile& file);
  LiveComm* comm(uint32_t number) {
    return number < process_.comms.size() ? &process_.comms[number] : nullptr;
  }

  std::string path_;
  LiveProcess process_;
  std::vector<format::ClockAnchor> anchors_;
  std::optional<TickClock> clock_;
  std::optional<ChunkFollower> meta_;
  std::map<uint16_t, Log> logs_;
  std::map<uint16_t, std::map<uint32_t, uint32_t>> first_look_;  // log -> chunk_no -> index, the newest ones
  uint32_t chunks_seen_ = 0;
  std::vector<uint32_t> unpublished_;        // chunks without a header: not in use yet
  size_t next_turn_ = 0;                     // which of them are looked at next
  std::unordered_map<uint64_t, Open> open_;  // by handle
  std::vector<uint64_t> stops_,
      earlier_stops_;  // handles that a StateRecord ended, of this refresh and the last
  std::unordered_map<uint64_t, uint64_t>
      moved_;  // handle as issued -> as its record was written again (ring retention)
  std::unordered_map<uint64_t, LiveOp> recent_;  // operations by handle: parents of GPU and network work
  std::deque<uint64_t> recent_order_;
};

}  // namespace lockstep::readers::native
