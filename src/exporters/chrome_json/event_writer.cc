// SPDX-License-Identifier: Apache-2.0
// JSON is written as text directly: a document tree of millions of events would not fit in memory, and most
// of each event is the same bytes, which are made once for each track and key.
#include "exporters/chrome_json/event_writer.h"

#include <array>

#include "model/trace.h"

namespace lockstep::exporters::chrome_json {
namespace {

using common::kArguments;
using common::Track;

// ,"key": of each argument.
const std::array<std::string, std::size(kArguments)>& keys() {
  static const auto made = [] {
    std::array<std::string, std::size(kArguments)> all;
    for (size_t i = 0; i < all.size(); ++i) all[i] = "," + json_string(kArguments[i].json) + ":";
    return all;
  }();
  return made;
}

}  // namespace

EventWriter::EventWriter(const common::ProcessSlices& slices, const model::StringPool& words, int64_t base_ns,
                         JsonWriter& json, Flows& flows, const std::vector<Place>& places)
    : slices_(slices), words_(words), base_ns_(base_ns), json_(json), flows_(flows) {
  for (uint32_t i = 0; i < slices.tracks().size(); ++i) {
    const Track& track = slices.tracks()[i];
    const Place place = i < places.size() ? places[i] : Place{track.pid, track.tid};
    track_places_.push_back(",\"pid\":" + std::to_string(place.pid) +
                            ",\"tid\":" + std::to_string(place.tid) + ",\"ts\":");
  }
}

void EventWriter::write_metadata() {
  for (const common::ViewerProcess& process : slices_.viewer_processes())
    events_ += write_process(process, json_);
  for (uint32_t i = 0; i < slices_.tracks().size(); ++i) {
    json_.event("{\"ph\":\"M\",\"name\":\"thread_name\"")
        .raw(track_places_[i])
        .raw("0.000,\"args\":{\"name\":");
    json_.text(slices_.tracks()[i].name).raw("}}");
    json_.event("{\"ph\":\"M\",\"name\":\"thread_sort_index\"")
        .raw(track_places_[i])
        .raw("0.000,\"args\":{\"sort_index\":");
    json_.number(slices_.tracks()[i].sort_index).raw("}}");
    events_ += 2;
  }
}

// The thread is nobody's: counters belong to a process.
void EventWriter::write_counters(const common::ProcessCounters& counters) {
  for (const common::Counter& counter : counters.counters())
    events_ += write_counter(counter, slices_.host_pid(), base_ns_, json_);
}

uint64_t write_process(const common::ViewerProcess& process, JsonWriter& json) {
  const auto item = [&](std::string_view name, std::string_view key, const std::string& value) {
    // Metadata needs no time, but Kineto gives it one, and some readers expect `ts` in every event.
    json.event("{\"ph\":\"M\",\"name\":\"").raw(name).raw("\",\"pid\":").signed_number(process.pid);
    json.raw(",\"tid\":0,\"ts\":0.000,\"args\":{\"").raw(key).raw("\":").raw(value).raw("}}");
  };
  item("process_name", "name", json_string(process.name));
  item("process_labels", "labels", json_string(process.label));
  item("process_sort_index", "sort_index", std::to_string(process.sort_index));
  return 3;
}

uint64_t write_counter(const common::Counter& counter, int64_t pid, int64_t base_ns, JsonWriter& json) {
  const std::string head = "{\"ph\":\"C\",\"name\":" + json_string(counter.name) +
                           ",\"pid\":" + std::to_string(pid) + ",\"tid\":0,\"ts\":";
  const std::string middle = ",\"args\":{" + json_string(counter.unit) + ":";
  for (const common::CounterValue& at : counter.values) {
    json.event(head).micros(at.time_ns - base_ns).raw(middle);
    if (counter.in_thousandths)
      json.thousandths(at.value);
    else
      json.signed_number(at.value);
    json.raw("}}");
  }
  return counter.values.size();
}

void EventWriter::instant(uint32_t track, std::string_view name, int64_t time_ns, int64_t value) {
  json_.event("{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"")
      .raw(category_text(Category::kInstant))
      .raw("\",\"name\":");
  json_.text(name).raw(track_places_[track]);
  json_.micros(time_ns - base_ns_).raw(",\"args\":{\"value\":").signed_number(value).raw("}}");
  ++events_;
}

void EventWriter::begin_quoted(const Slice& slice, Category category, std::string_view quoted_name) {
  json_.event("{\"ph\":\"X\",\"cat\":\"")
      .raw(category_text(category))
      .raw("\",\"name\":")
      .raw(quoted_name)
      .raw(track_places_[slice.track]);
  json_.micros(slice.start - base_ns_).raw(",\"dur\":").micros(slice.end - slice.start).raw(",\"args\":{");
  is_first_ = true;
  ++events_;
}

JsonWriter& EventWriter::key(Argument argument) {
  std::string_view text = keys()[static_cast<size_t>(argument)];
  if (is_first_) text.remove_prefix(1);
  is_first_ = false;
  return json_.raw(text);
}

const std::string& EventWriter::quoted(model::StringId word) {
  // The table of words grows while slices are described: catch up with it to the word that is asked for.
  while (quoted_.size() <= word)
    quoted_.push_back(json_string(words_[static_cast<model::StringId>(quoted_.size())]));
  return quoted_[word];
}

void EventWriter::fixed(const common::FixedArguments& list) {
  if (list.items.empty()) return;
  if (fixed_.size() <= list.number) fixed_.resize(list.number + 1);
  std::string& made = fixed_[list.number];
  if (made.empty()) {
    for (const auto& [argument, is_text, word, number] : list.items) {
      made += keys()[static_cast<size_t>(argument)];
      made += is_text ? quoted(word) : std::to_string(number);
    }
  }
  // Kept with its leading comma, which the first argument of a slice must not have.
  json_.raw(is_first_ ? std::string_view(made).substr(1) : made);
  is_first_ = false;
}

void EventWriter::operation(std::string_view hash, std::string_view kind, uint32_t index) {
  key(Argument::kOperation).raw("\"").raw(hash).raw(kind);
  if (index == model::kNoIndex)
    json_.raw("replay\"");
  else
    json_.number(index).raw("\"");
}

void EventWriter::grid(uint64_t blocks, uint64_t threads) {
  // Kineto's form. NCCL's grids have one dimension: a block for each channel.
  key(Argument::kGrid).raw("[").number(blocks).raw(",1,1]");
  key(Argument::kBlock).raw("[").number(threads).raw(",1,1]");
}

void EventWriter::arrow(const Slice& slice, uint64_t correlation, bool arrives) {
  // `ac2g` is Kineto's name for arrows from host to GPU. `bp: e` ends one at the enclosing slice; without it
  // the arrow would go to the next slice that begins.
  json_.event(arrives ? "{\"ph\":\"f\",\"bp\":\"e\"" : "{\"ph\":\"s\"")
      .raw(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":");
  json_.number(correlation).raw(track_places_[slice.track]).micros(slice.start - base_ns_).raw("}");
  ++events_;
}

void EventWriter::same_operation(const Slice& slice, uint64_t key) {
  const Track& track = slices_.tracks()[slice.track];
  flows_.add(key, slice.start, track.pid, track.tid);
}

}  // namespace lockstep::exporters::chrome_json
