// SPDX-License-Identifier: Apache-2.0
// Writes one process of the job as trace events: names of its tracks, slices with their arguments, instants,
// the arrows from host to GPU, and the points of the arrows between ranks. The Writer of a SliceDescriber.
// One thread.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporters/chrome_json/flows.h"
#include "exporters/chrome_json/json_writer.h"
#include "exporters/common/arguments.h"
#include "exporters/common/process_counters.h"
#include "exporters/common/process_slices.h"
#include "exporters/common/slice_describer.h"
#include "model/string_pool.h"

namespace lockstep::exporters::chrome_json {

using common::Argument;
using common::Category;
using common::Slice;

// Where a viewer shows a track.
struct Place {
  int64_t pid = 0, tid = 0;
};

class EventWriter {
 public:
  // `words` is what the names of slices and the texts of arguments are numbers of; `places`, by track, is
  // empty where they are those of the slices' own tracks.
  EventWriter(const common::ProcessSlices& slices, const model::StringPool& words, int64_t base_ns,
              JsonWriter& json, Flows& flows, const std::vector<Place>& places = {});
  void write_metadata();
  void write_counters(const common::ProcessCounters& counters);
  uint64_t events() const { return events_; }

  void begin(const Slice& slice, Category category, model::StringId name) {
    begin_quoted(slice, category, quoted(name));
  }
  void begin_unnamed(const Slice& slice, Category category, std::string_view name) {
    begin_quoted(slice, category, json_string(name));
  }
  void number(Argument argument, uint64_t value) { key(argument).number(value); }
  void signed_number(Argument argument, int64_t value) { key(argument).signed_number(value); }
  void time(Argument argument, int64_t ns) { key(argument).micros(ns); }
  void text(Argument argument, model::StringId word) { key(argument).raw(quoted(word)); }
  void flag(Argument argument) { key(argument).raw("true"); }
  void fixed(const common::FixedArguments& list);
  void operation(std::string_view hash, std::string_view kind, uint32_t index);
  void grid(uint64_t blocks, uint64_t threads);
  void end_arguments() { json_.raw("}}"); }
  void arrow(const Slice& slice, uint64_t correlation, bool arrives);
  void same_operation(const Slice& slice, uint64_t key);
  void end() {}
  void instant(uint32_t track, std::string_view name, int64_t time_ns, int64_t value);

 private:
  void begin_quoted(const Slice& slice, Category category, std::string_view quoted_name);
  // The key of an argument, with the comma before it unless it is the first.
  JsonWriter& key(Argument argument);
  const std::string& quoted(model::StringId word);

  const common::ProcessSlices& slices_;
  const model::StringPool& words_;
  const int64_t base_ns_;
  JsonWriter& json_;
  Flows& flows_;
  std::vector<std::string> track_places_;  // ,"pid":..,"tid":..,"ts":
  std::vector<std::string> quoted_;        // by word
  std::vector<std::string> fixed_;         // by number of the list; each item with a comma before it
  bool is_first_ = false;                  // argument of the slice
  uint64_t events_ = 0;
};

// Name, label and place of one of the viewer's processes. Returns the number of events.
uint64_t write_process(const common::ViewerProcess& process, JsonWriter& json);
// All values of a counter, as one of the viewer's process `pid`. Returns their number.
uint64_t write_counter(const common::Counter& counter, int64_t pid, int64_t base_ns, JsonWriter& json);

}  // namespace lockstep::exporters::chrome_json
