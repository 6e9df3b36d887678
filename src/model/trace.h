// SPDX-License-Identifier: Apache-2.0
// The one model that every reader fills, every analysis reads and every exporter writes: tables held as
// columns. The columns of a table, with their meaning, are in tables/<row>.def; this header turns each file
// into a row struct (`Op`), and a class of one column per field (`OpTable`). A row is named by its number in
// its table.
//
// Times: `_ns` columns are RunNs, ns since the Unix epoch on the clock of the process' host, made from its
// monotonic clock and one offset per boot, so that processes of one host compare exactly. Raw GPU columns say
// so. Threads: a Trace is owned by one thread at a time. Text is interned in `Trace::strings`.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/string_pool.h"
#include "model/table_column.h"

namespace lockstep::model {

// Values of columns that hold no row, no number of NCCL's, and no index.
inline constexpr uint32_t kNoRow = 0xffffffff;
inline constexpr uint64_t kNoSeq = ~uint64_t{0};
inline constexpr uint32_t kNoIndex = 0xffffffff;
inline constexpr uint64_t kUnreadDeviceComm = ~uint64_t{0};
// Who gave an operation's GPU times, best evidence first among those that place it. From kInspector on they
// tell how long GPU work took, not when it began.
enum class GpuTimeSource : uint8_t {
  kNone = 0,
  kKernelCh = 1,
  kApi = 2,
  kCupti = 3,
  kHsa = 4,
  kWatchdog = 5,
  kInspector = 6,
  kNetwork = 7
};
// "none", "KernelCh", ...; "?" for a number that is none.
std::string_view gpu_source_name(uint8_t source);
// Of a process: what it called before and after a part of its life is not known.
enum class Window : uint8_t {
  kNone = 0,      // all of its life was recorded
  kNumbered = 1,  // a part of it; operations are numbered from the begin of their communicator
  kCounted = 2,   // a part of it; operations are counted from the begin of the part
};
// What a row of kernels, launches or ranges is. The numbers are those of the tables and stay.
enum class KernelKind : uint8_t { kCompute = 0, kCommunication = 1, kCopy = 2 };
enum class LaunchKind : uint8_t { kNone = 0, kKernel = 1, kGraph = 2 };
enum class RangeKind : uint8_t { kNone = 0, kNested = 1, kFree = 2 };

// How many rows a table has, and how many its columns have room for.
class TableRows {
 public:
  TableRows() = default;
  TableRows(TableRows&& other) noexcept
      : size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, 0)) {}
  TableRows& operator=(TableRows&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    return *this;
  }
  size_t size() const { return size_; }
  // All values of a column, by row: trace.ops.all(&OpTable::bytes).
  template <class Table, class T>
  std::span<const T> all(TableColumn<T> Table::*column) const {
    return {(static_cast<const Table*>(this)->*column).data(), size_};
  }
  template <class Table, class T>
  std::span<T> all(TableColumn<T> Table::*column) {
    return {(static_cast<Table*>(this)->*column).data(), size_};
  }

 protected:
  size_t size_ = 0, room_ = 0;
};

#define LOCKSTEP_CONCAT_NAME(row, suffix) row##suffix
#define LOCKSTEP_TABLE_NAME_OF(row) LOCKSTEP_CONCAT_NAME(row, Table)
#define LOCKSTEP_TABLE_NAME(row) LOCKSTEP_TABLE_NAME_OF(row)
#define LOCKSTEP_ROW Process
#define LOCKSTEP_COLUMNS "model/tables/process.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW ClockAnchor
#define LOCKSTEP_COLUMNS "model/tables/clock_anchor.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Comm
#define LOCKSTEP_COLUMNS "model/tables/comm.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Thread
#define LOCKSTEP_COLUMNS "model/tables/thread.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Shape
#define LOCKSTEP_COLUMNS "model/tables/shape.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Call
#define LOCKSTEP_COLUMNS "model/tables/call.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Task
#define LOCKSTEP_COLUMNS "model/tables/task.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Channel
#define LOCKSTEP_COLUMNS "model/tables/channel.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW ProxyOp
#define LOCKSTEP_COLUMNS "model/tables/proxy_op.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW ProxyStep
#define LOCKSTEP_COLUMNS "model/tables/proxy_step.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW ProxyCtrl
#define LOCKSTEP_COLUMNS "model/tables/proxy_ctrl.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW NetEvent
#define LOCKSTEP_COLUMNS "model/tables/net_event.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Mark
#define LOCKSTEP_COLUMNS "model/tables/mark.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Op
#define LOCKSTEP_COLUMNS "model/tables/op.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Split
#define LOCKSTEP_COLUMNS "model/tables/split.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Launch
#define LOCKSTEP_COLUMNS "model/tables/launch.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Kernel
#define LOCKSTEP_COLUMNS "model/tables/kernel.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Range
#define LOCKSTEP_COLUMNS "model/tables/range.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Histogram
#define LOCKSTEP_COLUMNS "model/tables/histogram.def"
#include "model/tables/define_table.inc"

#define LOCKSTEP_ROW Loss
#define LOCKSTEP_COLUMNS "model/tables/loss.def"
#include "model/tables/define_table.inc"

#undef LOCKSTEP_TABLE_NAME
#undef LOCKSTEP_TABLE_NAME_OF
#undef LOCKSTEP_CONCAT_NAME

// TABLE(Row, member, sql) for each table, in an order in which rows only refer to earlier tables or their
// own. `sql` is its name in trace.db: RPD has a view `kernel`, and RANGE is a word of SQL.
#define LOCKSTEP_MODEL_TABLES(TABLE)                \
  TABLE(Process, processes, "process")              \
  TABLE(ClockAnchor, clock_anchors, "clock_anchor") \
  TABLE(Comm, comms, "comm")                        \
  TABLE(Thread, threads, "thread")                  \
  TABLE(Shape, shapes, "shape")                     \
  TABLE(Call, calls, "call")                        \
  TABLE(Task, tasks, "task")                        \
  TABLE(Channel, channels, "channel")               \
  TABLE(ProxyOp, proxy_ops, "proxy_op")             \
  TABLE(ProxyStep, proxy_steps, "proxy_step")       \
  TABLE(ProxyCtrl, proxy_ctrls, "proxy_ctrl")       \
  TABLE(NetEvent, net_events, "net_event")          \
  TABLE(Mark, marks, "mark")                        \
  TABLE(Op, ops, "op")                              \
  TABLE(Split, splits, "split")                     \
  TABLE(Launch, launches, "launch")                 \
  TABLE(Kernel, kernels, "gpu_kernel")              \
  TABLE(Range, ranges, "nvtx_range")                \
  TABLE(Histogram, histograms, "histogram")         \
  TABLE(Loss, losses, "loss")

// The tables of one process, or of the losses of a run. Row numbers are local to the trace. Owned by one
// thread at a time; moving it costs nothing, copying is not possible. Nothing here checks rows against
// tables: readers do, before they append.
struct Trace {
  StringPool strings;
#define TABLE(Row, member, sql) Row##Table member;
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  // Adds to the loss ledger, folding equal (process, stage, kind, detail).
  void lose(uint32_t process, std::string_view stage, std::string_view kind, uint64_t count,
            std::string_view detail);
  // Row of the shape, added when new. Its texts are ids of `strings`.
  uint32_t intern_shape(const Shape& shape);

 private:
  std::unordered_map<uint64_t, std::vector<uint32_t>> shape_index_;
};

}  // namespace lockstep::model
