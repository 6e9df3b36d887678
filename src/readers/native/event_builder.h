// SPDX-License-Identifier: Apache-2.0
// Records of one file -> rows of the model. Every event record becomes exactly one row, in whatever state it
// is; records about other records (State, Link, UserTag) are applied or counted. So per kind:
//   records in the census == rows + losses "recycled_record"
// Logs come one after another; what names an event of a log that has not come yet waits for `finish`.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "model/trace.h"
#include "readers/native/attach.h"
#include "readers/native/copy_name.h"
#include "readers/native/file/definitions.h"
#include "readers/native/file/gpu_agents.h"
#include "readers/native/file/record_cursor.h"
#include "readers/native/file/tick_clock.h"
#include "readers/native/gpu_work.h"
#include "readers/native/late_records.h"
#include "readers/native/record_census.h"
#include "readers/native/row_index.h"
#include "readers/native/split_lists.h"
#include "readers/native/thread_rows.h"

namespace lockstep::readers::native {

// One file's worth of work, on one thread. It checks every number against its table before it is stored:
// comm, shape, thread and parents of a record come from a file.
class EventBuilder {
 public:
  // All references outlive the builder. `process`: row of the file's process.
  EventBuilder(const FileView& view, TickClock& clock, const CommRows& comms, const GpuAgents& agents,
               ThreadRows& threads, uint32_t process, model::Trace& trace, ReadLosses& losses);

  // Makes room for exactly what the census counted, over all tables. Once, before the first log.
  void reserve(const RecordCensus& census);
  // Decodes the good ranges of a log's chunks. Logs come in ascending order of their numbers.
  void add_log(const LogCensus& log, LogDefinitions& definitions);
  // Resolves what was left over, after the last log.
  void finish();

  // Of all event times; 0 if there was none.
  int64_t first_ns() const { return first_ns_ == INT64_MAX ? 0 : first_ns_; }
  int64_t last_ns() const { return last_ns_; }

 private:
  // A child whose parent's log has not been read yet.
  struct PendingParent {
    RowRef child;
    uint64_t parent;
  };

  struct CallFields {  // of a model::Call, what only some kinds have
    uint32_t shape = model::kNoRow;
    uint64_t stream = 0, count = 0;
    int32_t depth = 0;
    int64_t group_start_ns = 0, group_end_ns = 0;
  };

  // The three steps from a chunk to one record. `position` counts units of the log, as handles do.
  void add_chunk(const RecordChunk& chunk, const ChunkBuffer& buffer);
  void add_record(const RecordCursor& cursor, uint64_t position);
  // What all kinds of calls share, as a row; returns it.
  template <class Record>
  uint32_t add_call(const Record& record, const CallFields& fields);
  // What all kinds of tasks share; not yet a row.
  template <class Record>
  model::Task task_of(const Record& record);
  // `group_link`: units back to its plan's record; 0 none.
  void add_task(const format::RecordHead& head, const model::Task& task, uint32_t group_link);
  // One for each record type, chosen by record_kinds.def: a row, or for records about other records a change
  // of one.
  void add(const format::GroupApiRecord& record);
  void add(const format::CollApiRecord& record);
  void add(const format::P2pApiRecord& record);
  void add(const format::KernelLaunchRecord& record);
  void add(const format::GroupRecord& record);
  void add(const format::CollRecord& record);
  void add(const format::ShortCollRecord& record) { add(format::expand(record)); }
  void add(const format::P2pRecord& record);
  void add(const format::ProxyOpRecord& record);
  void add(const format::ProxyStepRecord& record);
  void add(const format::ProxyCtrlRecord& record);
  void add(const format::KernelChRecord& record);
  void add(const format::KernelPhaseRecord& record);
  void add(const format::NetPluginRecord& record);
  void add(const format::CeCollRecord& record);
  void add(const format::CeSyncRecord& record);
  void add(const format::CeBatchRecord& record);
  void add(const format::ApiOpRecord& record);
  void add(const format::KernelRecord& record);
  void add(const format::LaunchCallRecord& record);
  void add(const format::CopyRecord& record);
  void add(const format::RangeRecord& record);
  void add(const format::MarkRecord& record);
  void add(const format::StateRecord& record);
  void add(const format::LinkRecord& record);
  void add(const format::UserTagRecord& record);
  void add(const format::SplitsRecord& record) { splits_.add(record); }
  void add(const format::DispatchRecord& record);
  void add(const format::QueuedCopyRecord& record);
  void add(const format::GpuTimesRecord& record);

  // Parents: `units` back in this log, or by handle.
  void link_back(RowRef child, uint32_t units) {
    RowRef parent = units <= position_ ? log_index_->find(position_ - units) : RowRef{};
    if (!parent || !attach(trace_, child, parent)) [[unlikely]]
      lose_parent();
  }
  void link_near(RowRef child, const format::RecordHead& head) {
    if (head.link == format::kFarLink) {
      ++far_links_;
    } else if (head.link != 0) {
      link_back(child, head.link);
    }
  }
  // By handle; what is not found waits for finish(), as logs are read one after another.
  void link_handle(RowRef child, uint64_t parent);
  // Each counts one loss. Kept out of line: the per-record path is inline and hardly ever comes here.
  void lose_parent();
  // Enters the record's row into the index.
  RowRef place(Target table, uint32_t row) {
    log_index_->set(unit_, table, row);
    return {table, row};
  }

  // False: the event is not there yet, so the record has to wait. A record that does not fit its event is
  // counted and done.
  bool apply(const format::StateRecord& record);
  bool apply(const format::LinkRecord& record);
  bool apply(const format::UserTagRecord& record);
  bool apply(const format::GpuTimesRecord& record);

  uint32_t comm_row(uint32_t index) {
    uint32_t row = comms_.row(index);
    if (row == model::kNoRow && index != format::kNoComm) [[unlikely]]
      lose_comm();
    return row;
  }
  uint32_t shape_row(uint16_t number) {
    bool known = false;
    uint32_t row = definitions_->shape_row(number, trace_, &known);
    if (!known && number != format::kNoShape) [[unlikely]]
      lose_shape();
    return row;
  }
  void lose_comm();
  void lose_shape();
  void lose_kernel_name();
  model::StringId range_name(uint32_t number) {
    bool known = false;
    const model::StringId name = definitions_->range_name(number, &known);
    if (!known) [[unlikely]]
      lose_range_name();
    return name;
  }
  void lose_range_name();
  void lose_gpu_stop();
  // Widens the time in which the process is known to have communicated; returns its argument.
  int64_t note(int64_t ns) {
    if (ns < first_ns_) first_ns_ = ns;
    if (ns > last_ns_) last_ns_ = ns;
    return ns;
  }
  int64_t start_ns(const format::RecordHead& head) { return note(clock_.to_ns(head.start)); }
  // A state's time in ns; 0 if it did not happen, or stands in a record of its own.
  int64_t after_ns(const format::RecordHead& head, uint32_t after) {
    if (after == 0) return 0;
    if (after == format::kSaturated) {
      ++saturated_;
      return 0;  // a StateRecord has it
    }
    return note(clock_.to_ns(head.start + after));
  }
  // 0: it has not stopped. A time that did not fit is the least that it can be, until the StateRecord
  // corrects it.
  int64_t stop_ns(const format::RecordHead& head) {
    if (head.stop_after == 0) return head.flags & format::kFlagStopped ? start_ns(head) : 0;
    saturated_ += head.stop_after == format::kSaturated;
    return note(clock_.to_ns(head.start + head.stop_after));  // at least that late
  }

  // Made once for each of the few combinations of kinds, as copies may be millions.
  model::StringId copy_name(const format::CopyRecord& record);
  // When GPU work ended, which its record always says.
  int64_t gpu_stop_ns(const format::RecordHead& head, int64_t start) {
    int64_t stop = stop_ns(head);
    if (stop == 0) [[unlikely]]
      lose_gpu_stop();
    return std::max(stop, start);
  }
  // GPU times that a caller of lockstep.h gave; 0, counted, on a clock that nothing ties to the host's.
  int64_t gpu_ns(uint32_t clock, uint64_t value);

  const FileView& view_;
  TickClock& clock_;
  const CommRows& comms_;
  ThreadRows& threads_;
  const uint32_t process_;
  model::Trace& trace_;
  ReadLosses& losses_;
  const bool keeps_handles_;  // network events were asked for: another process may name these
  RowIndex index_;

  // Where the record at hand lies.
  LogDefinitions* definitions_ = nullptr;
  LogIndex* log_index_ = nullptr;
  uint16_t log_ = 0;
  uint64_t position_ = 0;
  uint32_t unit_ = 0;
  uint32_t thread_ = model::kNoRow;

  std::vector<PendingParent> pending_parents_;
  std::vector<format::StateRecord> pending_states_;
  std::vector<format::LinkRecord> pending_links_;
  std::vector<format::UserTagRecord> pending_tags_;
  std::vector<format::GpuTimesRecord> pending_times_;
  SplitLists splits_;
  GpuWork gpu_work_;
  uint64_t far_links_ = 0, links_ = 0, saturated_ = 0, states_ = 0;
  // Of copies, by CopyKind and kinds of memory; 0 not made yet.
  std::array<model::StringId, 4 * kMemoryKinds * kMemoryKinds> copy_names_{};
  int64_t first_ns_ = INT64_MAX, last_ns_ = 0;
};

}  // namespace lockstep::readers::native
