// SPDX-License-Identifier: Apache-2.0
// Reads a dump's entries from the document, whatever PyTorch version made it: fields are found by key, and
// absent ones are unknown. A pickle may name one value a million times without taking more bytes, so what is
// made of it is bounded by totals over the file, beside the limits on each entry.
#include "readers/flight_recorder/dump.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <unordered_map>

#include "base/input_file.h"
#include "base/utf8.h"
#include "model/names/call_place.h"
#include "model/names/op_names.h"
#include "model/torch/process_group.h"
#include "readers/flight_recorder/plausible.h"
#include "readers/flight_recorder/value.h"

namespace lockstep::readers::flight_recorder {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

// So late that sums with it would overflow, it is damage.
int64_t time_or_none(int64_t ns) { return ns > INT64_MAX / 2 ? 0 : std::max<int64_t>(ns, 0); }

// A pickle may name one value many times, which no recorder does: what is looked at, and what is made of it,
// is bounded by what a dump without such references can hold.
constexpr size_t kMostEntries = size_t{1} << 20;
constexpr size_t kLongestName = 1024;
constexpr size_t kMostFrames = 256;                  // of an entry that are looked at
constexpr size_t kMostFrameItems = 32;               // keys and values of a frame
constexpr size_t kMostRankTexts = size_t{64} << 20;  // bytes of the lists of ranks of all groups

class Reader {
 public:
  Reader(const Document& document, Dump& dump)
      : values_(document.values), root_(document.root), dump_(dump) {}

  Result<void> read() {
    const ValueId entries = values_.find(root_, "entries");
    const ValueId version = values_.find(root_, "version");
    // A recorder that has seen nothing writes its groups alone.
    if (version == kNoValue || (entries == kNoValue && values_.find(root_, "pg_config") == kNoValue)) {
      return Error{
          ErrorCode::kInvalidInput, "not a Flight Recorder dump: it has no version, or no entries", {}};
    }
    dump_.version = name(version);
    for (const char* key : {"comm_lib_version", "nccl_version"}) {
      if (dump_.library_version.empty()) dump_.library_version = name(values_.find(root_, key));
    }
    read_groups();
    int64_t first_record = -1;
    ValueId last = kNoValue;
    for (const ValueId entry : values_.items(entries)) {
      if (!is_new_dict(entry, last) || dump_.entries.size() >= kMostEntries) {
        ++dump_.bad_entries;
        continue;
      }
      // Records count from 0 and the ring keeps the newest: the first that is left says how many are gone.
      if (first_record < 0) first_record = values_.integer(values_.find(entry, "record_id"), 0);
      read_entry(entry);
    }
    dump_.impossible += plausibility_.impossible();
    dump_.overwritten = static_cast<uint64_t>(std::max<int64_t>(first_record, 0));
    return {};
  }

 private:
  // Values are numbered in the order of the file: one that is not behind the one before it is there twice.
  bool is_new_dict(ValueId value, ValueId& last) const {
    if (!values_.is_dict(value) || (last != kNoValue && value <= last)) return false;
    last = value;
    return true;
  }

  std::string name(ValueId value) const { return valid_utf8(values_.text(value).substr(0, kLongestName)); }

  std::vector<int32_t> ranks(ValueId value) {
    const std::string_view text = values_.text(value);
    if (text.size() > rank_texts_left_) {
      ++dump_.impossible;
      return {};
    }
    rank_texts_left_ -= text.size();
    return model::parse_ranks(text);
  }

  // Of all tensors together; 0 where there are none, or it overflows.
  uint64_t elements(ValueId sizes) {
    uint64_t sum = 0;
    for (const ValueId tensor : values_.items(sizes)) {
      uint64_t product = 1;
      const std::vector<ValueId>& dimensions = values_.items(tensor);
      if (dimensions.size() >= sizes_left_) {
        sizes_left_ = 0;
        ++dump_.impossible;
        return 0;
      }
      // One more than its dimensions, so that a million empty tensors cost something, too.
      sizes_left_ -= dimensions.size() + 1;
      for (const ValueId dimension : dimensions) {
        const int64_t size = values_.integer(dimension, -1);
        if (size < 0 || __builtin_mul_overflow(product, static_cast<uint64_t>(size), &product)) return 0;
      }
      if (__builtin_add_overflow(sum, product, &sum)) return 0;
    }
    return sum;
  }

  void read_groups() {
    const ValueId config = values_.find(root_, "pg_config");
    if (!values_.is_dict(config)) return;
    const std::vector<ValueId>& items = values_.items(config);
    ValueId last = kNoValue;
    for (size_t i = 0; i + 1 < items.size(); i += 2) {
      const ValueId group = items[i + 1];
      if (!is_new_dict(group, last)) {
        ++dump_.impossible;
        continue;
      }
      std::string own = name(values_.find(group, "name"));
      if (own.empty()) own = name(items[i]);
      // Of two groups of one name the first stands, as entries name groups by name alone.
      if (group_ids_.contains(own)) continue;
      group_ids_[own] = static_cast<uint32_t>(dump_.groups.size());
      dump_.groups.push_back({.name = std::move(own),
                              .description = name(values_.find(group, "desc")),
                              .ranks = ranks(values_.find(group, "ranks"))});
    }
  }

  uint32_t group_of(ValueId entry) {
    const std::vector<ValueId>& pair = values_.items(values_.find(entry, "process_group"));
    std::string own, description;
    if (pair.size() == 2) {
      own = name(pair[0]);
      description = name(pair[1]);
    } else {  // before version 2.0
      own = std::to_string(values_.integer(values_.find(entry, "pg_id"), 0));
    }
    const auto [at, is_new] = group_ids_.try_emplace(own, static_cast<uint32_t>(dump_.groups.size()));
    // Old dumps list no groups, and damaged ones may lack one: its members are then not known.
    if (is_new) dump_.groups.push_back({.name = own, .description = description, .ranks = {}});
    return at->second;
  }

  std::string datatype(ValueId entry) const {
    for (const char* key : {"input_dtypes", "output_dtypes"}) {
      const std::vector<ValueId>& types = values_.items(values_.find(entry, key));
      if (!types.empty()) return std::string(model::nccl_dtype(name(types[0])));
    }
    return {};
  }

  // "nccl:send 0->1": the ranks are those of the group, the own one first.
  static int32_t peer_of(std::string_view name) {
    size_t at = name.find("->");
    if (at == std::string_view::npos) at = name.find("<-");
    int32_t peer = -1;
    if (at == std::string_view::npos) return peer;
    std::from_chars(name.data() + at + 2, name.data() + name.size(), peer);
    return peer;
  }

  // PyTorch writes each frame once, and names it again by its number: equal numbers are equal frames.
  uint32_t place_of(ValueId list) {
    const std::vector<ValueId>& items = values_.items(list);
    frame_key_.assign(reinterpret_cast<const char*>(items.data()),
                      std::min(items.size(), kMostFrames) * sizeof(ValueId));
    const auto known = places_of_frames_.find(frame_key_);
    if (known != places_of_frames_.end()) return known->second;
    return places_of_frames_[frame_key_] = read_place(items);
  }

  // Innermost first.
  uint32_t read_place(const std::vector<ValueId>& items) {
    model::CallPlace place;
    for (size_t i = 0; i < std::min(items.size(), kMostFrames) && !place.is_complete(); ++i) {
      if (values_.items(items[i]).size() > kMostFrameItems) continue;
      const std::string_view file = values_.text(values_.find(items[i], "filename"));
      const auto [library, is_new] = libraries_.try_emplace(file);
      if (is_new) library->second = model::is_library(file);
      place.add({.function = values_.text(values_.find(items[i], "name")),
                 .file = file,
                 .line = integer(items[i], "line", 0)},
                library->second);
    }
    const std::string text = place.text();
    if (text.empty()) return 0;
    const auto [at, is_new] = place_ids_.try_emplace(text, static_cast<uint32_t>(dump_.places.size()));
    if (is_new) dump_.places.push_back(text);
    return at->second;
  }

  int64_t integer(ValueId entry, std::string_view key, int64_t otherwise) const {
    return values_.integer(values_.find(entry, key), otherwise);
  }

  void read_entry(ValueId from) {
    const std::string called = name(values_.find(from, "profiling_name"));
    Entry entry;
    entry.group = group_of(from);
    entry.func = model::nccl_func(called);
    entry.is_p2p = entry.func == "Send" || entry.func == "Recv";
    entry.closes = called.ends_with("coalesced");
    // Older versions count all operations of a group by one number.
    entry.seq = integer(from, "collective_seq_id", integer(from, "seq_id", -1));
    entry.p2p_seq = integer(from, "p2p_seq_id", -1);
    entry.created_ns = time_or_none(integer(from, "time_created_ns", 0));
    // Before anything is left out: it follows the numbers of all entries.
    plausibility_.look(values_, from, entry, dump_);
    if (entry.is_p2p) {
      entry.peer = peer_of(called);
      // A receive from anybody has no lane: nothing shows which send it took.
      if (entry.peer < 0) {
        ++dump_.any_source;
        return;
      }
    }
    entry.datatype = datatype(from);
    entry.in = elements(values_.find(from, "input_sizes"));
    entry.out = elements(values_.find(from, "output_sizes"));
    entry.count = model::common_count(entry.func, entry.in, entry.out);
    entry.place = place_of(values_.find(from, "frames"));
    entry.retired = integer(from, "retired", 0) != 0;
    entry.started_ns = time_or_none(integer(from, "time_discovered_started_ns", 0));
    entry.completed_ns = time_or_none(integer(from, "time_discovered_completed_ns", 0));
    int64_t timeout_ms = integer(from, "timeout_ms", 0);
    // 49 days at most, so that ns fit into 64 bits.
    entry.timeout_ns = std::clamp<int64_t>(timeout_ms, 0, int64_t{1} << 32) * 1'000'000;
    const std::string_view state = values_.text(values_.find(from, "state"));
    if (state == "completed") {
      entry.completion = Completion::kCompleted;
      // It ended, at a time that nobody saw. One nanosecond after its call says so and claims nothing more.
      if (entry.completed_ns == 0) entry.completed_ns = entry.created_ns + 1;
    } else if (state == "started") {
      entry.completion = Completion::kStarted;
      if (entry.started_ns == 0) entry.started_ns = entry.created_ns + 1;
    }
    dump_.entries.push_back(std::move(entry));
  }

  const Values& values_;
  const ValueId root_;
  Dump& dump_;
  std::map<std::string, uint32_t> group_ids_;
  std::unordered_map<std::string, uint32_t> place_ids_, places_of_frames_;  // the latter by numbers of frames
  std::string frame_key_;
  std::unordered_map<std::string_view, bool> libraries_;
  Plausibility plausibility_;
  size_t rank_texts_left_ = kMostRankTexts, sizes_left_ = Values::kMost;
};

// Members of a coalesced group are never seen to move: what closes the group speaks for them, and is itself
// no operation where they were recorded.
void close_coalesced(Dump& dump) {
  std::map<uint32_t, std::vector<size_t>> open;  // by group: entries since the last that closed
  std::map<uint32_t, int64_t> last_closed;       // by group: number of the last entry that closed
  std::vector<bool> dropped(dump.entries.size());
  for (size_t i = 0; i < dump.entries.size(); ++i) {
    Entry& entry = dump.entries[i];
    std::vector<size_t>& members = open[entry.group];
    if (!entry.closes) {
      if (entry.completion == Completion::kUnknown && !entry.retired) members.push_back(i);
      continue;
    }
    for (const size_t member : members) {
      Entry& of = dump.entries[member];
      // Members of the group bear the number of what closes it.
      if (of.is_p2p ? of.p2p_seq != entry.p2p_seq : of.seq != entry.seq) continue;
      of.completion = entry.completion;
      of.started_ns = entry.started_ns;
      of.completed_ns = entry.completed_ns;
      of.retired = entry.retired;
      dropped[i] = true;
    }
    members.clear();
    // "allreduce_coalesced" is an operation, and may itself be closed.
    int64_t& closed = last_closed[entry.group];
    if (entry.func == "coalesced" && entry.seq >= 0 && entry.seq == closed) dropped[i] = true;
    closed = entry.seq;
  }
  size_t kept = 0;
  for (size_t i = 0; i < dump.entries.size(); ++i) {
    if (dropped[i]) continue;
    if (kept != i) dump.entries[kept] = std::move(dump.entries[i]);
    ++kept;
  }
  dump.entries.resize(kept);
}

// PyTorch writes the rank behind whatever the user has named, a word or not.
int32_t rank_of_dump_name(const std::string& path) {
  const size_t last = path.find_last_not_of("0123456789");
  const size_t begin = last == std::string::npos ? 0 : last + 1;
  int32_t rank = -1;
  std::from_chars(path.data() + begin, path.data() + path.size(), rank);
  return rank >= 0 ? rank : model::rank_of_file_name(path);
}

}  // namespace

Result<Dump> read_dump(const std::string& path) {
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(path));
  if (file.size() > kMostBytes)
    return Error{ErrorCode::kInvalidInput, "larger than any Flight Recorder dump (1 GiB)", path};
  std::string bytes(file.size(), '\0');
  bytes.resize(file.read_at(0, std::as_writable_bytes(std::span(bytes))));
  // PROTO, with which a pickle of protocol 2 and above begins. JSON is text.
  const bool is_pickle = !bytes.empty() && static_cast<uint8_t>(bytes[0]) == 0x80;
  auto document = is_pickle ? read_pickle(bytes) : read_json(bytes);
  Dump dump;
  dump.path = path;
  dump.rank = rank_of_dump_name(path);
  Result<void> read = document ? Reader(*document, dump).read() : Result<void>(document.error());
  if (!read) return Error{read.error().code, read.error().text, path};
  dump.cut = std::move(document->cut);
  close_coalesced(dump);
  for (const Entry& entry : dump.entries)
    dump.last_ns = std::max({dump.last_ns, entry.created_ns, entry.started_ns, entry.completed_ns});
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0)
    dump.modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  return dump;
}

}  // namespace lockstep::readers::flight_recorder
