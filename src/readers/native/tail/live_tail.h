// SPDX-License-Identifier: Apache-2.0
// What one process file says of the present, read again and again while the process writes it: communicators,
// the newest operations, what is open, and how much there was. A refresh reads the header, and of each thread
// log what is new: two reads of some bytes each where nothing is. It never reads more than kMostChunks a log,
// so a refresh costs the same however large the file is; rates of what was passed over are estimated from
// what was read.
//
// Only the first look goes through the chunk headers of the whole file (64 bytes in every 32 KiB). One
// thread.
//
// With Depth::kAll it reads all of the file once, from the oldest record that is there, some chunks of each
// log a refresh, and counts what it reads (LiveTally) instead of estimating; behind() tells whether more is
// waiting.
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

#include "format/counted.h"
#include "format/walk.h"
#include "readers/native/file/chunk_follower.h"
#include "readers/native/file/tick_clock.h"
#include "readers/native/launch_join.h"
#include "readers/native/tail/live_tally.h"

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
  int64_t oldest_open_ns = 0;                     // when the oldest of what is open began; 0 nothing is
};
struct LiveOp {
  std::string func;
  uint32_t comm = format::kNoComm;  // of LiveProcess::comms
  std::optional<uint64_t> number;   // NCCL's, per communicator and function
  int64_t started_ns = 0;
};
// A numbered operation began.
struct LiveArrival {
  uint32_t comm = format::kNoComm;
  std::string func;
  uint64_t number = 0;
  int64_t started_ns = 0;
};
struct LiveProcess {
  format::FileHeader header{};  // as last read
  int64_t heartbeat_ns = 0;     // 0: never
  int32_t device = -1;          // of its first GPU, inside the process; -1 unknown
  std::string pci;              // of that GPU; empty unknown
  std::vector<LiveComm> comms;  // by their number in the process
  bool from_start = true;       // everything since the process began was read
  std::optional<LiveOp> last;   // the operation that started last
  std::optional<LiveOp>
      oldest_open;  // of API calls, operations, GPU and network work that have begun and not ended
  size_t open = 0;
  double ops = 0, bytes = 0;  // since the first look; estimated where something was passed over
  uint64_t dropped = 0;       // events that capture had to drop
  std::array<uint64_t, format::kAllLossKinds> losses{};  // by losses.def, of the whole file
  std::deque<LiveArrival> arrivals;  // Depth::kAll: of the last refresh, the newest kMostArrivals
  uint64_t passed_over = 0;          // chunks that ring retention used again before they were read
};

class LiveTail {
 public:
  // Of one log in one refresh at Depth::kNow; and arrivals that are kept of one refresh.
  static constexpr uint32_t kMostChunks = 8;
  static constexpr size_t kMostArrivals = 8192;
  enum class Depth { kNow, kAll };

  // Looks for the first time.
  // `join`: shared by the files of one process, to give kernels to operations.
  static Result<std::unique_ptr<LiveTail>> open(const std::string& path, Depth depth = Depth::kNow,
                                                std::shared_ptr<LaunchJoin> join = nullptr);
  // Reads what is new; an error if the file can no longer be read.
  Result<void> refresh();
  const LiveProcess& process() const { return process_; }
  // Depth::kAll alone has counts, and may be behind.
  const LiveTally* tally() const { return tally_ ? &*tally_ : nullptr; }
  bool behind() const { return behind_; }
  // A time on CLOCK_MONOTONIC of the process' host, on the clock of the process' times.
  int64_t from_monotonic(uint64_t ns) const { return clock_->from_monotonic(ns); }

 private:
  // What an operation is, by the number that records of the log name it by. Bytes are elements times
  // `element_bytes`.
  struct Shape {
    std::string func;
    uint32_t element_bytes = 1;
  };
  // One thread's log, as far as it was read.
  struct Log {
    std::optional<ChunkFollower> records, definitions;
    std::map<uint32_t, Shape> shapes;
    std::map<uint32_t, std::string> kernels;  // by number of their name: the function; empty for computation
    uint32_t next_chunk = 0;                  // the first one that was not read, once its list was lost
    bool is_lost = false;                     // and has not been found again
    std::vector<format::ThreadDef> threads;   // that had the log, one after the other
    struct {
      uint64_t position = 0;  // of the GroupApi that began last
      size_t calls = 0, launches = 0;
      LaunchJoin::Op op;  // the last of its calls
    } group;
    uint64_t newest_start = 0;        // of what was read, ticks
    uint64_t losses_offset = 0;       // in the file, of its loss counters; 0 not found yet
    format::Counted<double> counted;  // read in this refresh
  };
  // An event that had not ended when it was read; it is looked at again where its record lies.
  struct Open {
    uint64_t offset;  // of its record in the file
    uint64_t start;   // ticks
    LiveOp op;
    format::Kind kind;
  };
  // An end that another thread's log reports.
  struct Stop {
    uint64_t handle;
    uint64_t ticks;
  };
  // A record and where it lies.
  struct Entry {
    const format::Walk<format::RecordHead>& record;
    uint64_t offset, handle;
    template <class T>
    T as() const {
      return record.as<T>();
    }
  };

  LiveTail(std::string path, Depth depth, std::shared_ptr<LaunchJoin> join)
      : path_(std::move(path)), join_(std::move(join)) {
    if (depth == Depth::kAll) tally_.emplace();
  }
  // The file is open during a refresh alone; `file_` points to the same.
  void find_chunks(const ProcessBytes& file);
  std::vector<uint32_t> take_candidates();
  void add_chunk(uint32_t index, const format::ChunkHeader& header);
  void start_logs();  // those that first_look_ holds
  void read_meta(const ProcessBytes& file);
  void add_comm(const format::CommDef& def);
  void read_definitions(const ProcessBytes& file, Log& log);
  const Shape* shape(Log& log, uint16_t number);
  void read_newest(const ProcessBytes& file, Log& log);
  void read_all(const ProcessBytes& file);
  void visit_at(const format::Walk<format::RecordHead>& record, Log& log);
  void visit(const Entry& entry, Log& log);
  template <class Record>
  void add_call(const Entry& entry, Log& log);
  // A task: NCCL's, or a declared operation's. `number`: none if its kind is not numbered.
  template <class Record>
  void add_task(const Entry& entry, const Record& record, std::optional<uint64_t> number, Log& log);
  // GPU or network work of an operation; `what`: its name while its operation is not known.
  template <class Record>
  void add_part(const Entry& entry, std::string_view what);
  LiveOp note_op(Log& log, const format::RecordHead& head, uint32_t comm, uint16_t shape,
                 std::optional<uint64_t> number);
  // As the tally wants it; its `func` is a view into `op`.
  LiveTally::Operation counted(const LiveOp& op, double bytes, bool declared);
  void add_api_op(const Entry& entry, Log& log);
  void add_kernel(const Entry& entry, Log& log);
  void note_call_of_group(const Entry& entry, const format::RecordHead& head, const LaunchJoin::Op& op,
                          Log& log);
  void add_launch(const Entry& entry, Log& log);
  void take_joined();
  void add_definition(const format::Walk<format::DefHead>& entry, Log& log);
  void add_kernel_name(const format::Walk<format::DefHead>& entry, Log& log);
  // What ended, as its record shows, or as another thread reported at `stopped`.
  void count_ended(const ProcessBytes& file, const Open& open, uint64_t stopped);
  // Ticks of AMD's clock are no time without their rate.
  void count_channel(const format::KernelChRecord& record) {
    if (process_.header.gpu_clock == format::GpuClock::kNvidiaNs)
      tally_->channel(record.parent, record.gpu_start, record.gpu_stop);
  }
  // Keeps an event that has not ended. Beyond a bound new ones are left out, as the oldest show best why a
  // rank is stuck.
  void hold_open(const Entry& entry, const format::RecordHead& head, LiveOp op);
  void close_ended(const ProcessBytes& file);
  void count_dropped(const ProcessBytes& file);
  // Whether definitions may be read a second time for a record that names an unknown number.
  bool look_again() { return second_looks_ > 0 && second_looks_-- > 0; }
  // Null for what no definition names.
  LiveComm* known_comm(uint32_t number);
  LiveComm* comm(uint32_t number);

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
  std::vector<Stop> stops_,
      earlier_stops_;  // what a StateRecord ended, of this refresh and the last
  std::unordered_map<uint64_t, uint64_t>
      moved_;  // handle as issued -> as its record was written again (ring retention)
  std::unordered_map<uint64_t, LiveOp> recent_;  // operations by handle: parents of GPU and network work
  std::deque<uint64_t> recent_order_;
  std::optional<LiveTally> tally_;
  std::shared_ptr<LaunchJoin> join_;
  uint64_t last_counted_ = 0;           // handle of the call or task that this refresh counted last
  const ProcessBytes* file_ = nullptr;  // during a refresh
  uint32_t second_looks_ = 0;           // for definitions, that are left in this refresh: files may lie
  bool behind_ = false;
  bool finished_ = false;  // closed, and read to its end
};

}  // namespace lockstep::readers::native
