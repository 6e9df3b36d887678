// SPDX-License-Identifier: Apache-2.0
// Most of a trace's bytes are names, keys and times. Names and keys are sent once for each sequence and then
// named by a small number; times are differences on a clock of the track. A sequence has to begin anew when
// its clocks are used up, and then sends them again.
#include "exporters/perfetto/event_writer.h"

#include <bit>
#include <charconv>
#include <unordered_map>

#include "base/utf8.h"
#include "model/trace.h"

namespace lockstep::exporters::perfetto {
namespace {

using common::kArguments;
using common::kCategories;

// Interned numbers of one byte.
static_assert(std::size(kArguments) < 0x7f && std::size(kCategories) < 0x7f);

constexpr size_t kPacketHead = 8 * kLongestVarint;  // of an event: what stands before its parts

}  // namespace

void write_packet(common::BufferedOutput& out, std::string_view packet) {
  char* at = out.room(2 * kLongestVarint);
  out.take(put_varint(put_varint(at, tag(field::trace::kPacket, kLengthDelimited)), packet.size()));
  out.append(packet);
}

void write_process_track(const common::ViewerProcess& process, uint64_t uuid, common::BufferedOutput& out) {
  namespace track = field::track;
  ProtoBytes packet, descriptor, part;
  part.signed_number(field::process::kPid, process.pid);
  part.bytes(field::process::kName, valid_utf8(process.name));
  part.bytes(field::process::kLabels, valid_utf8(process.label));
  descriptor.number(track::kUuid, uuid).bytes(track::kProcess, part.view());
  descriptor.signed_number(track::kOrderRank, process.sort_index);
  write_packet(out, packet.bytes(field::packet::kTrackDescriptor, descriptor.view()).view());
}

void write_counter_track(const common::Counter& counter, uint64_t uuid, uint64_t process,
                         common::BufferedOutput& out) {
  namespace track = field::track;
  ProtoBytes packet, descriptor, part;
  if (counter.unit == "count")
    part.number(field::counter::kUnit, kUnitCount);
  else
    part.bytes(field::counter::kUnitName, counter.unit);
  descriptor.number(track::kUuid, uuid).bytes(track::kName, valid_utf8(counter.name));
  descriptor.number(track::kParent, process).bytes(track::kCounter, part.view());
  write_packet(out, packet.bytes(field::packet::kTrackDescriptor, descriptor.view()).view());
}

void put_counter_value(const common::Counter& counter, const common::CounterValue& at, ProtoBytes& event) {
  if (counter.in_thousandths) {
    const double value = static_cast<double>(at.value) / 1e3;
    event.fixed64(field::event::kDoubleCounterValue, std::bit_cast<uint64_t>(value));
  } else {
    event.signed_number(field::event::kCounterValue, at.value);
  }
}

EventWriter::EventWriter(const common::ProcessSlices& slices, const model::StringPool& words,
                         common::BufferedOutput& out, FileNumbers& numbers)
    : slices_(slices), words_(words), out_(out), numbers_(numbers), first_track_(numbers.track + 1) {
  numbers_.track += slices.tracks().size() + slices.viewer_processes().size();
}

void EventWriter::write_descriptors() {
  namespace track = field::track;
  ProtoBytes packet, descriptor, part;
  const auto write = [&] {
    packet.clear();
    write_packet(out_, packet.bytes(field::packet::kTrackDescriptor, descriptor.view()).view());
  };
  std::unordered_map<int64_t, uint64_t> by_pid;
  for (const common::ViewerProcess& process : slices_.viewer_processes()) {
    const uint64_t uuid = first_process() + by_pid.size();
    by_pid.emplace(process.pid, uuid);
    write_process_track(process, uuid, out_);
  }
  for (uint32_t i = 0; i < slices_.tracks().size(); ++i) {
    const common::Track& place = slices_.tracks()[i];
    part.clear();
    part.signed_number(field::thread::kPid, place.pid).signed_number(field::thread::kTid, place.tid);
    part.bytes(field::thread::kName, valid_utf8(place.name));
    descriptor.clear();
    descriptor.number(track::kUuid, first_track_ + i).number(track::kParent, by_pid[place.pid]);
    descriptor.bytes(track::kThread, part.view()).number(track::kOrderRank, place.sort_index);
    write();
  }
}

// Numbers of names, texts and keys belong to a sequence: nothing that was sent before counts on a new one.
void EventWriter::begin_sequence() {
  ++numbers_.sequence;
  clock_ = kFirstOwnClock;
  is_new_ = true;
  sent_names_.clear();
  sent_texts_.clear();
  sent_categories_.assign(std::size(kCategories), false);
  sent_keys_.assign(std::size(kArguments), false);
  fixed_.clear();
}

// The snapshot ties the track's own clock, which counts differences, to real time.
void EventWriter::begin_uuid(uint64_t uuid, int64_t start_ns) {
  if (++clock_ >= kEndOfOwnClocks) begin_sequence();
  last_ns_ = start_ns;
  ProtoBytes packet, part, inner;
  packet.number(field::packet::kSequence, numbers_.sequence);
  // The importer drops packets that need state until the sequence has said once that its state is cleared.
  packet.number(field::packet::kSequenceFlags, is_new_ ? kStateCleared | kNeedsState : kNeedsState);
  is_new_ = false;
  inner.number(field::event::kTrack, uuid);
  part.bytes(field::defaults::kTrackEvent, inner.view()).number(field::defaults::kTimestampClock, clock_);
  packet.bytes(field::packet::kDefaults, part.view());
  part.clear();
  inner.clear();
  inner.number(field::clock::kId, clock_).signed_number(field::clock::kTimestamp, start_ns);
  part.bytes(field::clock_snapshot::kClock, inner.number(field::clock::kIsIncremental, 1).view());
  inner.clear();
  inner.number(field::clock::kId, kRealtimeClock).signed_number(field::clock::kTimestamp, start_ns);
  part.bytes(field::clock_snapshot::kClock, inner.view());
  write_packet(out_, packet.bytes(field::packet::kClockSnapshot, part.view()).view());
}

void EventWriter::end_track() { end_slices(INT64_MAX); }

// Ends what ended before `until_ns`, innermost first.
void EventWriter::end_slices(int64_t until_ns) {
  for (; !open_.empty() && open_.back() <= until_ns; open_.pop_back()) {
    char* const begin = out_.room(kPacketHead);
    // Always shorter than 128 bytes, so that its size is one byte.
    char* at = put_varint(begin, tag(field::trace::kPacket, kLengthDelimited)) + 1;
    char* const body = at;
    at = put_varint(at, tag(field::packet::kTimestamp, kVarint));
    at = put_varint(at, static_cast<uint64_t>(open_.back() - last_ns_));
    at = put_varint(at, tag(field::packet::kSequence, kVarint));
    at = put_varint(at, numbers_.sequence);
    at = put_varint(at, tag(field::packet::kSequenceFlags, kVarint));
    at = put_varint(at, kNeedsState);
    at = put_varint(at, tag(field::packet::kTrackEvent, kLengthDelimited));
    *at++ = 2;
    at = put_varint(at, tag(field::event::kType, kVarint));
    *at++ = kSliceEnd;
    body[-1] = static_cast<char>(at - body);
    out_.take(at);
    last_ns_ = open_.back();
  }
}

void EventWriter::intern(uint32_t kind, uint64_t iid, std::string_view text) {
  const std::string valid = valid_utf8(text);
  const size_t size = varint_size(tag(field::interned_text::kIid, kVarint)) + varint_size(iid) +
                      varint_size(tag(field::interned_text::kText, kLengthDelimited)) +
                      varint_size(valid.size()) + valid.size();
  interned_.header(kind, size).number(field::interned_text::kIid, iid);
  interned_.bytes(field::interned_text::kText, valid);
}

uint64_t EventWriter::iid_of_name(model::StringId word) {
  if (sent_names_.size() <= word) sent_names_.resize(words_.size());
  // Numbers count from 1: 0 means none to the importer.
  if (!sent_names_[word]) intern(field::interned::kEventName, word + uint64_t{1}, words_[word]);
  sent_names_[word] = true;
  return word + uint64_t{1};
}

uint64_t EventWriter::iid_of_text(model::StringId word) {
  if (sent_texts_.size() <= word) sent_texts_.resize(words_.size());
  if (!sent_texts_[word]) intern(field::interned::kAnnotationText, word + uint64_t{1}, words_[word]);
  sent_texts_[word] = true;
  return word + uint64_t{1};
}

uint64_t EventWriter::iid_of_key(Argument argument) {
  const auto i = static_cast<size_t>(argument);
  if (!sent_keys_[i]) intern(field::interned::kAnnotationName, i + 1, kArguments[i].json);
  sent_keys_[i] = true;
  return i + 1;
}

void EventWriter::start(const Slice& slice, Category category) {
  end_slices(slice.start);
  slice_ = slice;
  event_.clear();
  annotations_.clear();
  arguments_.clear();
  flows_.clear();
  const auto i = static_cast<size_t>(category);
  if (!sent_categories_[i]) intern(field::interned::kCategory, i + 1, kCategories[i]);
  sent_categories_[i] = true;
  // Neither time nor track: end() adds the one, and the other is the default of the sequence.
  event_.number(field::event::kType, kSliceBegin).number(field::event::kCategoryIid, i + 1);
}

void EventWriter::begin(const Slice& slice, Category category, model::StringId name) {
  start(slice, category);
  name_ = name;
  event_.number(field::event::kNameIid, iid_of_name(name));
}

void EventWriter::begin_unnamed(const Slice& slice, Category category, std::string_view name) {
  start(slice, category);
  event_.bytes(field::event::kName, valid_utf8(name));
}

void EventWriter::text(Argument argument, model::StringId word) {
  if (argument == Argument::kEvent && word == name_) return;
  const uint64_t key = iid_of_key(argument), value = iid_of_text(word);
  const size_t size = varint_size(tag(field::annotation::kNameIid, kVarint)) + varint_size(key) +
                      varint_size(tag(field::annotation::kTextIid, kVarint)) + varint_size(value);
  annotations_.header(field::event::kAnnotation, size).number(field::annotation::kNameIid, key);
  annotations_.number(field::annotation::kTextIid, value);
}

// What many slices have in common is encoded once a sequence, as keys and texts are that sequence's numbers.
void EventWriter::fixed(const common::FixedArguments& list) {
  if (fixed_.size() <= list.number) fixed_.resize(list.number + 1);
  Fixed& made = fixed_[list.number];
  if (made.is_made) {
    annotations_.append(made.annotations);
    arguments_.append(made.arguments);
    return;
  }
  const size_t annotations = annotations_.size(), arguments = arguments_.size();
  for (const auto& [argument, is_text, word, value] : list.items) {
    // Texts that only JSON needs (split sizes of even splits) have no place in this format.
    if (info(argument).kind == common::ArgumentKind::kText) {
      text(argument, word);
    } else if (!is_text) {
      signed_number(argument, value);
    }
  }
  made = {true, std::string(annotations_.view().substr(annotations)),
          std::string(arguments_.view().substr(arguments))};
}

void EventWriter::operation(std::string_view hash, std::string_view kind, uint32_t index) {
  char digits[kLongestVarint];
  std::string_view last = "replay";
  if (index != model::kNoIndex) {
    const char* const end = std::to_chars(digits, std::end(digits), index).ptr;
    last = {digits, static_cast<size_t>(end - digits)};
  }
  const uint64_t key = iid_of_key(Argument::kOperation);
  const size_t length = hash.size() + kind.size() + last.size();
  const size_t size = varint_size(tag(field::annotation::kNameIid, kVarint)) + varint_size(key) +
                      varint_size(tag(field::annotation::kText, kLengthDelimited)) + varint_size(length) +
                      length;
  annotations_.header(field::event::kAnnotation, size).number(field::annotation::kNameIid, key);
  annotations_.header(field::annotation::kText, length).append(hash).append(kind).append(last);
}

void EventWriter::end() {
  if (!arguments_.empty()) event_.header(field::event::kLockstep, arguments_.size());
  const size_t event_size = event_.size() + arguments_.size() + annotations_.size() + flows_.size();
  // Sizes come before what they are sizes of: the head is made first, behind room for the packet's own size.
  char head[kPacketHead];
  char* at = put_varint(head, tag(field::packet::kTimestamp, kVarint));
  at = put_varint(at, static_cast<uint64_t>(slice_.start - last_ns_));
  at = put_varint(at, tag(field::packet::kSequence, kVarint));
  at = put_varint(at, numbers_.sequence);
  at = put_varint(at, tag(field::packet::kSequenceFlags, kVarint));
  at = put_varint(at, kNeedsState);
  if (!interned_.empty()) {
    at = put_varint(at, tag(field::packet::kInternedData, kLengthDelimited));
    at = put_varint(at, interned_.size());
  }
  const size_t event_head =
      varint_size(tag(field::packet::kTrackEvent, kLengthDelimited)) + varint_size(event_size);
  // Interned data stand in the packet that first uses them, before its event.
  const size_t head_size = static_cast<size_t>(at - head);
  char* to = out_.room(2 * kPacketHead);
  to = put_varint(to, tag(field::trace::kPacket, kLengthDelimited));
  to = put_varint(to, head_size + interned_.size() + event_head + event_size);
  std::memcpy(to, head, head_size);
  out_.take(to + head_size);
  out_.append(interned_.view());
  interned_.clear();
  to = put_varint(out_.room(2 * kLongestVarint), tag(field::packet::kTrackEvent, kLengthDelimited));
  out_.take(put_varint(to, event_size));
  out_.append(event_.view());
  out_.append(arguments_.view());
  out_.append(annotations_.view());
  out_.append(flows_.view());
  last_ns_ = slice_.start;
  open_.push_back(slice_.end);
  ++events_;
}

void EventWriter::write_counters(const common::ProcessCounters& counters) {
  for (const common::Counter& counter : counters.counters()) {
    // Numbers of tracks and processes were taken in the constructor; counters are numbered after them.
    write_counter_track(counter, ++numbers_.track, first_process(), out_);
    begin_uuid(numbers_.track, counter.values.front().time_ns);
    for (const common::CounterValue& at : counter.values) write_counter_value(counter, at);
    events_ += counter.values.size();
  }
}

void EventWriter::write_counter_value(const common::Counter& counter, const common::CounterValue& at) {
  event_.clear();
  event_.number(field::event::kType, kCounterEvent);
  put_counter_value(counter, at, event_);
  packet_.clear();
  packet_.signed_number(field::packet::kTimestamp, at.time_ns - last_ns_);
  packet_.number(field::packet::kSequence, numbers_.sequence);
  packet_.number(field::packet::kSequenceFlags, kNeedsState);
  write_packet(out_, packet_.bytes(field::packet::kTrackEvent, event_.view()).view());
  last_ns_ = at.time_ns;
}

void EventWriter::instant(uint32_t track, std::string_view name, int64_t time_ns, int64_t value) {
  ProtoBytes packet, event, arguments;
  // A run of marks alone has begun no track, and a packet must belong to a sequence.
  if (numbers_.sequence == 0) begin_sequence();
  arguments.signed_number(info(Argument::kValue).field, value);
  event.number(field::event::kType, kInstant).number(field::event::kTrack, first_track_ + track);
  event.bytes(field::event::kCategory, category_text(Category::kInstant));
  event.bytes(field::event::kName, valid_utf8(name));
  event.bytes(field::event::kLockstep, arguments.view());
  // Absolute and on the clock REALTIME: instants come after all tracks and must not count on a track's clock.
  packet.signed_number(field::packet::kTimestamp, time_ns);
  packet.number(field::packet::kTimestampClock, kRealtimeClock);
  packet.number(field::packet::kSequence, numbers_.sequence);
  write_packet(out_, packet.bytes(field::packet::kTrackEvent, event.view()).view());
  ++events_;
}

}  // namespace lockstep::exporters::perfetto
