// SPDX-License-Identifier: Apache-2.0
// Writes one process of the job as packets of Perfetto's trace format. The Writer of a SliceDescriber. One
// thread.
//
//   descriptors of its processes and threads        as the JSON timeline has them
//   for each track: a packet that begins it         its clock, and the defaults of what follows: that clock,
//                                                   that track
//                   begin, end, begin, ...          each as time since the packet before; innermost slices
//                                                   end first
//   for each counter: its descriptor, a packet that begins it, value, value, ...
//   instants                                        with all they need in themselves
//
// Names, categories, texts and their keys are numbers after their first use. They belong to a packet
// sequence, which a process has for each 64 tracks, because so many clocks of its own a sequence may have.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporters/common/arguments.h"
#include "exporters/common/buffered_output.h"
#include "exporters/common/process_counters.h"
#include "exporters/common/process_slices.h"
#include "exporters/common/slice_describer.h"
#include "exporters/perfetto/fields.h"
#include "exporters/perfetto/proto_bytes.h"
#include "model/string_pool.h"

namespace lockstep::exporters::perfetto {

using common::Argument;
using common::Category;
using common::Slice;

// Numbers that no two processes of a file share.
struct FileNumbers {
  uint32_t sequence = 0;  // the last one used
  uint64_t track = 0;     // likewise
};

class EventWriter {
 public:
  // `words` is what the names of slices and the texts of arguments are numbers of.
  EventWriter(const common::ProcessSlices& slices, const model::StringPool& words,
              common::BufferedOutput& out, FileNumbers& numbers);
  void write_descriptors();
  void write_counters(const common::ProcessCounters& counters);
  // What is described next lies on this track, in order of time; `start_ns`: of its first slice.
  void begin_track(uint32_t track, int64_t start_ns) { begin_uuid(first_track_ + track, start_ns); }
  void end_track();
  uint64_t events() const { return events_; }

  void begin(const Slice& slice, Category category, model::StringId name);
  void begin_unnamed(const Slice& slice, Category category, std::string_view name);
  void number(Argument argument, uint64_t value) {
    if (const uint32_t field = info(argument).field; field != 0) arguments_.number(field, value);
  }
  void signed_number(Argument argument, int64_t value) { number(argument, static_cast<uint64_t>(value)); }
  void time(Argument argument, int64_t ns) { signed_number(argument, ns); }
  // Which event of NCCL a call is, is left out where its name says it.
  void text(Argument argument, model::StringId word);
  void flag(Argument argument) { number(argument, 1); }
  void fixed(const common::FixedArguments& list);
  void operation(std::string_view hash, std::string_view kind, uint32_t index);
  void grid(uint64_t blocks, uint64_t threads) {
    number(Argument::kGrid, blocks);
    number(Argument::kBlock, threads);
  }
  void end_arguments() {}
  void arrow(const Slice&, uint64_t correlation, bool) { flows_.fixed64(field::event::kFlow, correlation); }
  void same_operation(const Slice&, uint64_t key) {
    flows_.fixed64(field::event::kFlow, key | kBetweenRanks);
  }
  void end();
  void instant(uint32_t track, std::string_view name, int64_t time_ns, int64_t value);

 private:
  static constexpr uint64_t kBetweenRanks = uint64_t{1} << 63;  // correlations are below
  struct Fixed {
    bool is_made = false;
    std::string annotations, arguments;
  };

  void begin_sequence();
  // Begins the clock of a track, and makes both the defaults.
  void begin_uuid(uint64_t uuid, int64_t start_ns);
  // Of the first of the viewer's processes; the others follow.
  uint64_t first_process() const { return first_track_ + slices_.tracks().size(); }
  void write_counter_value(const common::Counter& counter, const common::CounterValue& at);
  void start(const Slice& slice, Category category);
  void end_slices(int64_t until_ns);
  void intern(uint32_t kind, uint64_t iid, std::string_view text);
  uint64_t iid_of_name(model::StringId word);
  uint64_t iid_of_text(model::StringId word);
  uint64_t iid_of_key(Argument argument);

  const common::ProcessSlices& slices_;
  const model::StringPool& words_;
  common::BufferedOutput& out_;
  FileNumbers& numbers_;
  const uint64_t first_track_;  // what stands for track 0 in the file; 0 there is nobody's
  uint32_t clock_ = kEndOfOwnClocks;
  bool is_new_ = true;  // the sequence: nothing of it has been written
  // What has been sent on this sequence, by word, category and argument.
  std::vector<bool> sent_names_, sent_texts_, sent_categories_, sent_keys_;
  std::vector<Fixed> fixed_;
  int64_t last_ns_ = 0;        // time of the packet before
  std::vector<int64_t> open_;  // ends of the slices that enclose the present, outermost first
  Slice slice_;                // being described
  model::StringId name_ = 0;   // its name, unless it has one of its own
  ProtoBytes packet_, event_, annotations_, arguments_, flows_, interned_;  // packet_: of counters
  uint64_t events_ = 0;
};

// Appends one packet.
void write_packet(common::BufferedOutput& out, std::string_view packet);

// Describes the track of a process.
void write_process_track(const common::ViewerProcess& process, uint64_t uuid, common::BufferedOutput& out);
// Describes the track of a counter, below the track of a process.
void write_counter_track(const common::Counter& counter, uint64_t uuid, uint64_t process,
                         common::BufferedOutput& out);
// The value within an event of the counter's track.
void put_counter_value(const common::Counter& counter, const common::CounterValue& at, ProtoBytes& event);

}  // namespace lockstep::exporters::perfetto
