// SPDX-License-Identifier: Apache-2.0
// Puts declared operations into a trace of PyTorch's profiler without rewriting it: the file is copied byte
// for byte, and new events follow its last one. A parser that wrote it anew could lose what it does not know.
// The file is read twice, since the window, the process id and the largest id are known only at its end.
#include "cli/convert/into_trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "base/input_file.h"
#include "exporters/common/output_file.h"
#include "readers/kineto/event.h"
#include "readers/kineto/event_stream.h"
#include "readers/kineto/recording.h"

namespace lockstep::cli::convert {
namespace {

using exporters::chrome_json::TraceFrame;
using readers::kineto::EventStream;

// Keys of the numbers by which events of a trace are joined.
constexpr std::string_view kIds[] = {
    "\"External id\":", "\"correlation\":", "\"Record function id\":", "\"id\":"};
constexpr uint64_t kLargestId = uint64_t{1} << 52;  // a larger one is no id of the profiler's

struct Profile {
  TraceFrame frame;
  uint64_t insert_at = 0;  // offset behind the last event
  bool has_events = false;
};

void take_ids(std::string_view event, uint64_t& largest) {
  for (const std::string_view key : kIds) {
    size_t at = event.find(key);
    if (at == std::string_view::npos) continue;
    at += key.size();
    while (at < event.size() && event[at] == ' ') ++at;
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(event.data() + at, event.data() + event.size(), id);
    if (error == std::errc{} && id < kLargestId) largest = std::max(largest, id);
  }
}

// The window is that of the host's rows: events of `pid` alone.
Result<Profile> read_profile(const InputFile& file) {
  Profile profile;
  EventStream stream(file);
  readers::kineto::EventParser parser;
  int64_t first = INT64_MAX, last = INT64_MIN;
  profile.frame.pid = -1;
  while (true) {
    const EventStream::Piece piece = stream.next();
    if (piece.kind == EventStream::Kind::kEnd) break;
    if (piece.kind == EventStream::Kind::kTopLevel) {
      if (piece.key == "baseTimeNanoseconds")
        std::from_chars(piece.text.data(), piece.text.data() + piece.text.size(), profile.frame.base_ns);
      continue;
    }
    profile.insert_at = piece.offset + piece.text.size();
    profile.has_events = true;
    take_ids(piece.text, profile.frame.largest_id);
    if (!readers::kineto::head_of(piece.text).is_timed ||
        piece.text.find("\"cpu_op\"") == std::string_view::npos)
      continue;
    const auto event = parser.event(piece.text, readers::kineto::EventKind::kOther);
    if (!event || event->ts_ns < 0 || event->pid < 0) continue;
    profile.frame.pid = event->pid;
    first = std::min(first, event->ts_ns);
    last = std::max(last, event->ts_ns + event->dur_ns);
  }
  // In a file that is cut the last event may end anywhere, and an insertion would make it look whole.
  if (!stream.is_object() || !stream.is_whole() || stream.damages() > 0)
    return Error{ErrorCode::kInvalidInput,
                 "is not a complete PyTorch profiler trace; nothing can be added to it", file.path()};
  if (!profile.has_events || profile.frame.pid < 0)
    return Error{ErrorCode::kInvalidInput, "has no CPU operation; record with ProfilerActivity.CPU",
                 file.path()};
  profile.frame.first_ns = profile.frame.base_ns + first;
  profile.frame.last_ns = profile.frame.base_ns + last;
  return profile;
}

Result<void> load_rank(model::TraceSource& run, int32_t rank, const std::string& profile,
                       model::Trace& trace) {
  std::string there;
  for (size_t i = 0; i < run.processes(); ++i) {
    model::Trace process;
    // Counted as a loss by the source; the rank may be in another file.
    if (auto loaded = run.load(i, process); !loaded) continue;
    if (process.processes.rank[0] == rank) {
      trace = std::move(process);
      return {};
    }
    there += (there.empty() ? "" : ", ") + std::to_string(process.processes.rank[0]);
  }
  return Error{ErrorCode::kNotFound,
               "is of rank " + std::to_string(rank) + ", which is not in the run; there are: " + there,
               profile};
}

Result<void> copy(const InputFile& file, uint64_t from, uint64_t until,
                  exporters::chrome_json::JsonWriter& json) {
  std::array<std::byte, 64 << 10> piece;
  while (from < until) {
    const size_t bytes = std::min<uint64_t>(piece.size(), until - from);
    const size_t read = file.read_at(from, std::span(piece).first(bytes));
    // The profiler may write the file anew at this moment, and a copy with a hole is no trace.
    if (read < bytes)
      return Error{ErrorCode::kIo, "shrank while it was read: convert it again once it is complete",
                   file.path()};
    json.raw({reinterpret_cast<const char*>(piece.data()), read});
    from += read;
  }
  return {};
}

}  // namespace

Result<Inserted> write_into(const std::string& profile_path, model::TraceSource& run,
                            const std::string& output) {
  Inserted inserted;
  LOCKSTEP_ASSIGN(const readers::kineto::Heading heading, readers::kineto::read_heading(profile_path));
  if (heading.rank < 0)
    return Error{ErrorCode::kInvalidInput, "names no rank, nor does its file name: call it rank0.json",
                 profile_path};
  inserted.rank = heading.rank;
  LOCKSTEP_ASSIGN(const InputFile file, InputFile::open(profile_path));
  LOCKSTEP_ASSIGN(const Profile profile, read_profile(file));
  model::Trace trace;
  LOCKSTEP_TRY(load_rank(run, heading.rank, profile_path, trace));
  LOCKSTEP_ASSIGN(auto out, exporters::common::OutputFile::create(output));
  exporters::chrome_json::JsonWriter json(*out);
  LOCKSTEP_TRY(copy(file, 0, profile.insert_at, json));
  // There is an event before, so a comma comes first.
  json.follow();
  inserted.what = exporters::chrome_json::write_declared(trace, profile.frame, json);
  LOCKSTEP_TRY(copy(file, profile.insert_at, file.size(), json));
  json.flush();
  LOCKSTEP_ASSIGN(inserted.bytes, out->finish());
  return inserted;
}

}  // namespace lockstep::cli::convert
