// SPDX-License-Identifier: Apache-2.0
// The one model that every reader fills, every analysis reads and every exporter writes: tables held as columns.
// The columns of a table, with their meaning, are in tables/<row>.def; this header turns each file into a row
// struct (`Op`), and a class of one vector per column (`OpTable`). A row is named by its number in its table.
//
// Times: `_ns` columns are RunNs, ns since the Unix epoch on the clock of the process' host, made from its monotonic
// clock and one offset per boot, so that processes of one host compare exactly. Raw GPU columns say so.
// Threads: a Trace is owned by one thread at a time. Text is interned in `Trace::strings`.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/string_pool.h"

namespace lockstep::model {

inline constexpr uint32_t kNoRow = 0xffffffff;
inline constexpr uint64_t kNoSeq = ~uint64_t{0};
enum class GpuTimeSource : uint8_t { kNone = 0, kKernelCh = 1, kApi = 2, kCupti = 3, kHsa = 4 };

// How many rows a table has, and how many its columns have room for: asked once per row, not once per column.
class TableRows {
 public:
  TableRows() = default;
  TableRows(const TableRows& other) : size_(other.size_), room_(other.size_) {}
  TableRows(TableRows&& other) noexcept
      : size_(std::exchange(other.size_, 0)), room_(std::exchange(other.room_, 0)) {}
  TableRows& operator=(const TableRows& other) {
    size_ = room_ = other.size_;
    return *this;
  }
  TableRows& operator=(TableRows&& other) noexcept {
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, 0);
    return *this;
  }
  size_t size() const { return size_; }

 protected:
  // Appends to a column that has room.
  template <class T>
  static void put(std::vector<T>& column, T value) {
    if (column.size() == column.capacity()) __builtin_unreachable();
    column.push_back(value);
  }

  size_t size_ = 0, room_ = 0;
};

struct Process {
#define COLUMN(type, name, text) type name{};
#include "model/tables/process.def"
#undef COLUMN
};
class ProcessTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/process.def"
#undef COLUMN
  using Row = Process;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/process.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Process& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/process.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Process row(size_t i) const {
    Process row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/process.def"
#undef COLUMN
    return row;
  }
};

struct ClockAnchor {
#define COLUMN(type, name, text) type name{};
#include "model/tables/clock_anchor.def"
#undef COLUMN
};
class ClockAnchorTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/clock_anchor.def"
#undef COLUMN
  using Row = ClockAnchor;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/clock_anchor.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const ClockAnchor& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/clock_anchor.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  ClockAnchor row(size_t i) const {
    ClockAnchor row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/clock_anchor.def"
#undef COLUMN
    return row;
  }
};

struct Comm {
#define COLUMN(type, name, text) type name{};
#include "model/tables/comm.def"
#undef COLUMN
};
class CommTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/comm.def"
#undef COLUMN
  using Row = Comm;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/comm.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Comm& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/comm.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Comm row(size_t i) const {
    Comm row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/comm.def"
#undef COLUMN
    return row;
  }
};

struct Thread {
#define COLUMN(type, name, text) type name{};
#include "model/tables/thread.def"
#undef COLUMN
};
class ThreadTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/thread.def"
#undef COLUMN
  using Row = Thread;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/thread.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Thread& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/thread.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Thread row(size_t i) const {
    Thread row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/thread.def"
#undef COLUMN
    return row;
  }
};

struct Shape {
#define COLUMN(type, name, text) type name{};
#include "model/tables/shape.def"
#undef COLUMN
};
class ShapeTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/shape.def"
#undef COLUMN
  using Row = Shape;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/shape.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Shape& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/shape.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Shape row(size_t i) const {
    Shape row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/shape.def"
#undef COLUMN
    return row;
  }
};

struct Call {
#define COLUMN(type, name, text) type name{};
#include "model/tables/call.def"
#undef COLUMN
};
class CallTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/call.def"
#undef COLUMN
  using Row = Call;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/call.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Call& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/call.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Call row(size_t i) const {
    Call row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/call.def"
#undef COLUMN
    return row;
  }
};

struct Task {
#define COLUMN(type, name, text) type name{};
#include "model/tables/task.def"
#undef COLUMN
};
class TaskTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/task.def"
#undef COLUMN
  using Row = Task;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/task.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Task& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/task.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Task row(size_t i) const {
    Task row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/task.def"
#undef COLUMN
    return row;
  }
};

struct Channel {
#define COLUMN(type, name, text) type name{};
#include "model/tables/channel.def"
#undef COLUMN
};
class ChannelTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/channel.def"
#undef COLUMN
  using Row = Channel;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/channel.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Channel& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/channel.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Channel row(size_t i) const {
    Channel row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/channel.def"
#undef COLUMN
    return row;
  }
};

struct ProxyOp {
#define COLUMN(type, name, text) type name{};
#include "model/tables/proxy_op.def"
#undef COLUMN
};
class ProxyOpTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/proxy_op.def"
#undef COLUMN
  using Row = ProxyOp;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/proxy_op.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const ProxyOp& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/proxy_op.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  ProxyOp row(size_t i) const {
    ProxyOp row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/proxy_op.def"
#undef COLUMN
    return row;
  }
};

struct ProxyStep {
#define COLUMN(type, name, text) type name{};
#include "model/tables/proxy_step.def"
#undef COLUMN
};
class ProxyStepTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/proxy_step.def"
#undef COLUMN
  using Row = ProxyStep;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/proxy_step.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const ProxyStep& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/proxy_step.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  ProxyStep row(size_t i) const {
    ProxyStep row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/proxy_step.def"
#undef COLUMN
    return row;
  }
};

struct ProxyCtrl {
#define COLUMN(type, name, text) type name{};
#include "model/tables/proxy_ctrl.def"
#undef COLUMN
};
class ProxyCtrlTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/proxy_ctrl.def"
#undef COLUMN
  using Row = ProxyCtrl;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/proxy_ctrl.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const ProxyCtrl& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/proxy_ctrl.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  ProxyCtrl row(size_t i) const {
    ProxyCtrl row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/proxy_ctrl.def"
#undef COLUMN
    return row;
  }
};

struct NetEvent {
#define COLUMN(type, name, text) type name{};
#include "model/tables/net_event.def"
#undef COLUMN
};
class NetEventTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/net_event.def"
#undef COLUMN
  using Row = NetEvent;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/net_event.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const NetEvent& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/net_event.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  NetEvent row(size_t i) const {
    NetEvent row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/net_event.def"
#undef COLUMN
    return row;
  }
};

struct Mark {
#define COLUMN(type, name, text) type name{};
#include "model/tables/mark.def"
#undef COLUMN
};
class MarkTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/mark.def"
#undef COLUMN
  using Row = Mark;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/mark.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Mark& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/mark.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Mark row(size_t i) const {
    Mark row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/mark.def"
#undef COLUMN
    return row;
  }
};

struct Op {
#define COLUMN(type, name, text) type name{};
#include "model/tables/op.def"
#undef COLUMN
};
class OpTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/op.def"
#undef COLUMN
  using Row = Op;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/op.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Op& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/op.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Op row(size_t i) const {
    Op row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/op.def"
#undef COLUMN
    return row;
  }
};

struct Histogram {
#define COLUMN(type, name, text) type name{};
#include "model/tables/histogram.def"
#undef COLUMN
};
class HistogramTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/histogram.def"
#undef COLUMN
  using Row = Histogram;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/histogram.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Histogram& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/histogram.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Histogram row(size_t i) const {
    Histogram row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/histogram.def"
#undef COLUMN
    return row;
  }
};

struct Loss {
#define COLUMN(type, name, text) type name{};
#include "model/tables/loss.def"
#undef COLUMN
};
class LossTable : public TableRows {
 public:
#define COLUMN(type, name, text) std::vector<type> name;
#include "model/tables/loss.def"
#undef COLUMN
  using Row = Loss;
  void reserve(size_t rows) {
#define COLUMN(type, name, text) name.reserve(rows);
#include "model/tables/loss.def"
#undef COLUMN
    room_ = std::max(rows, size_);
  }
  uint32_t append(const Loss& row) {
    if (size_ == room_) [[unlikely]]
      reserve(std::max<size_t>(2 * size_, 16));
#define COLUMN(type, name, text) put(name, row.name);
#include "model/tables/loss.def"
#undef COLUMN
    return static_cast<uint32_t>(size_++);
  }
  Loss row(size_t i) const {
    Loss row;
#define COLUMN(type, name, text) row.name = name[i];
#include "model/tables/loss.def"
#undef COLUMN
    return row;
  }
};

// TABLE(Row, member) for each table, in an order in which rows only refer to earlier tables or their own.
#define LOCKSTEP_MODEL_TABLES(TABLE) \
  TABLE(Process, processes)          \
  TABLE(ClockAnchor, clock_anchors)  \
  TABLE(Comm, comms)                 \
  TABLE(Thread, threads)             \
  TABLE(Shape, shapes)               \
  TABLE(Call, calls)                 \
  TABLE(Task, tasks)                 \
  TABLE(Channel, channels)           \
  TABLE(ProxyOp, proxy_ops)          \
  TABLE(ProxyStep, proxy_steps)      \
  TABLE(ProxyCtrl, proxy_ctrls)      \
  TABLE(NetEvent, net_events)        \
  TABLE(Mark, marks)                 \
  TABLE(Op, ops)                     \
  TABLE(Histogram, histograms)       \
  TABLE(Loss, losses)

struct Trace {
  StringPool strings;
#define TABLE(Row, member) Row##Table member;
  LOCKSTEP_MODEL_TABLES(TABLE)
#undef TABLE
  // Adds to the loss ledger, folding equal (process, stage, kind, detail).
  void lose(uint32_t process, std::string_view stage, std::string_view kind, uint64_t count,
            std::string_view detail);
  // Row of the shape, added when new.
  uint32_t intern_shape(const Shape& shape);

 private:
  std::unordered_map<uint64_t, std::vector<uint32_t>> shape_index_;
};

}  // namespace lockstep::model
