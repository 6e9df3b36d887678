// SPDX-License-Identifier: Apache-2.0
// Makes traces of dumps. A dump says what was queued and what has ended, but not when it was written, and
// without that nothing shows how long an open operation has been waiting. So that moment is bounded: the
// recorder writes when the first open operation's time limit passes, and the file's own time can only make it
// earlier, as it is lost when a file is copied.
#include "readers/flight_recorder/flight_recorder.h"

#include <algorithm>
#include <map>

#include "model/event_kind.h"
#include "model/names/element_size.h"
#include "model/record_gaps.h"
#include "model/torch/process_group.h"
#include "model/torch/torch_groups.h"
#include "readers/common/read_all.h"
#include "readers/flight_recorder/dump.h"

namespace lockstep::readers::flight_recorder {
namespace {

using model::EventKind;
using model::kNoRow;
using model::Trace;

constexpr int64_t kShortestWaitNs = 1'000'000'000;
// So many operations without a known end, all of them dropped: this recorder never learns of one.
constexpr size_t kUnseenEnds = 8;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  if (text.size() < 2) return false;
  const bool is_pickle = static_cast<uint8_t>(text[0]) == 0x80 && static_cast<uint8_t>(text[1]) <= 5;
  // Many files are pickles, checkpoints among them: the words that a dump begins with have to be there.
  if (is_pickle) return has(text, "version") && (has(text, "entries") || has(text, "pg_config"));
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{') return false;
  return has(text, "\"pg_config\"") || has(text, "\"profiling_name\"") || has(text, "\"pg_status\"") ||
         has(text, "\"comm_lib_version\"");
}

bool ends_are_unseen(const Dump& dump) {
  return dump.entries.size() >= kUnseenEnds &&
         std::all_of(dump.entries.begin(), dump.entries.end(), [](const Entry& entry) {
           return entry.retired && entry.completion == Completion::kUnknown;
         });
}

// When a dump was written is not in it. The recorder writes dumps when the time limit of an operation has
// passed; a file that was written earlier was asked for earlier. A file's own time is lost when it is copied,
// so it only shortens.
int64_t written_ns(const Dump& dump) {
  const int64_t last = dump.last_ns;
  int64_t limit = last;
  if (!ends_are_unseen(dump)) {
    for (const Entry& entry : dump.entries) {
      if (entry.completion == Completion::kCompleted || entry.created_ns == 0) continue;
      // The first open operation is the oldest, so its limit passes first.
      limit = std::max(last, entry.created_ns + entry.timeout_ns);
      break;
    }
  }
  return dump.modified_ns >= last + kShortestWaitNs ? std::min(limit, dump.modified_ns) : limit;
}

// One process: one dump.
class TraceMaker {
 public:
  TraceMaker(const Dump& dump, int32_t world, int64_t written_ns, Trace& trace)
      : dump_(dump), world_(world), written_ns_(written_ns), trace_(trace) {}

  void make() {
    add_process();
    for (const Group& group : dump_.groups) add_comm(group);
    find_running();
    index_.resize(trace_.comms.size());
    p2ps_.resize(trace_.comms.size());
    trace_.ops.reserve(dump_.entries.size());
    for (const std::string& place : dump_.places) places_.push_back(trace_.strings.intern(place));
    for (size_t i = 0; i < dump_.entries.size(); ++i) {
      if (place_is_known(dump_.entries[i])) add_op(i);
    }
    add_losses();
  }

 private:
  void add_process() {
    // Without a host each process has a clock of its own.
    const std::string own_clock =
        "flight recorder of " + (dump_.rank >= 0 ? std::to_string(dump_.rank) : dump_.path);
    model::Process process{};
    process.boot_id = trace_.strings.intern(own_clock);
    process.rank = dump_.rank;
    process.local_rank = process.node_rank = -1;
    process.device = process.gpu = -1;
    process.pid = -1;
    process.world = world_;
    process.nccl_version = model::parse_nccl_version(dump_.library_version);
    process.last_ns = dump_.last_ns;
    process.first_ns = process.last_ns;
    for (const Entry& entry : dump_.entries) {
      if (entry.created_ns != 0) process.first_ns = std::min(process.first_ns, entry.created_ns);
    }
    // Until when the process was watched: open operations have waited for as long.
    process.heartbeat_ns = std::max(written_ns_, process.last_ns);
    trace_.processes.append(process);
  }

  void add_comm(const Group& group) {
    model::Comm comm{};
    comm.index_in_process = static_cast<uint32_t>(trace_.comms.size());
    const std::string name = model::process_group_name(group.name, group.description);
    // PyTorch's dumps lack NCCL's id. This one is made of what the dumps of all members have alike.
    comm.comm_id = model::process_group_id(name, group.ranks);
    comm.name = trace_.strings.intern(name);
    comm.ranks = group.ranks.empty() ? -1 : static_cast<int32_t>(group.ranks.size());
    comm.nodes = comm.device = comm.gpu = comm.rank = -1;
    for (size_t i = 0; i < group.ranks.size(); ++i) {
      if (group.ranks[i] == dump_.rank && dump_.rank >= 0) comm.rank = static_cast<int32_t>(i);
    }
    comm.members = trace_.strings.intern(model::members_text(group.ranks));
    comm.init_ns = trace_.processes.first_ns[0];
    if (!group.ranks.empty()) {
      const model::RankProgression ranks = model::progression_of(group.ranks);
      comm.group_name = trace_.strings.intern(group.name);
      comm.group_description = trace_.strings.intern(group.description);
      comm.rank_start = ranks.start;
      comm.rank_stride = ranks.stride;
    }
    trace_.comms.append(comm);
  }

  // All before it have ended, so the oldest open operation is with the GPU. Later ones may wait behind it.
  void find_running() {
    if (ends_are_unseen(dump_)) return;
    const auto open = [](const Entry& entry) {
      return entry.completion != Completion::kCompleted && !entry.is_p2p;
    };
    running_ = static_cast<size_t>(std::find_if(dump_.entries.begin(), dump_.entries.end(), open) -
                                   dump_.entries.begin());
  }

  bool place_is_known(const Entry& entry) {
    // Sends and receives are counted per peer from the first on, and here the first ones are gone.
    if (!entry.is_p2p || dump_.overwritten == 0) return true;
    ++unplaced_;
    return false;
  }

  uint32_t shape(const Entry& entry) {
    return trace_.intern_shape(
        {trace_.strings.intern(entry.func), trace_.strings.intern(entry.datatype), 0, 0, 0});
  }

  void add_op(size_t i) {
    const Entry& entry = dump_.entries[i];
    model::Op op{};
    op.comm = entry.group;
    op.kind = number(entry.is_p2p ? EventKind::kP2pApi : EventKind::kCollApi);
    op.shape = shape(entry);
    // Collectives keep their place by PyTorch's number, whatever the ring lost.
    op.index = entry.is_p2p ? p2ps_[entry.group]++ : index_[entry.group].of(entry.seq);
    op.seq = model::kNoSeq;  // PyTorch's counts over all functions
    op.count = entry.count;
    op.in_count = entry.in;
    op.out_count = entry.out;
    model::set_torch_number(trace_, op, entry.is_p2p ? entry.p2p_seq : entry.seq, entry.is_p2p);
    if (__builtin_mul_overflow(entry.count, uint64_t{model::element_size(entry.datatype)}, &op.bytes))
      op.bytes = 0;
    op.place = places_[entry.place];
    op.peer = entry.peer;
    op.thread = op.task = op.call = op.group = kNoRow;
    op.called_ns = entry.created_ns;
    op.gpu_error_ns = -1;
    if (entry.completion == Completion::kCompleted) {
      // When the watchdog noticed; it polls, so the end was before.
      op.gpu_end_ns = entry.completed_ns;
    } else if (entry.completion == Completion::kStarted) {
      op.gpu_start_ns = entry.started_ns;
    } else if (i == running_) {
      op.gpu_start_ns = entry.created_ns;
    }
    if (op.gpu_start_ns != 0 || op.gpu_end_ns != 0)
      op.gpu_source = static_cast<uint8_t>(model::GpuTimeSource::kWatchdog);
    trace_.ops.append(op);
  }

  void add_losses() {
    auto lose = [this](std::string_view kind, uint64_t count, const std::string& text) {
      trace_.lose(0, "read", kind, count, text + ": " + dump_.path);
    };
    // Ranks still compare: numbers of collectives do not begin with the ring.
    lose("older_operations", dump_.overwritten, "older operations that the recorder's ring had dropped");
    lose("unplaced_p2p", unplaced_, "sends and receives without a known number, as older ones are gone");
    lose("bad_record", dump_.bad_entries, "entries that are not operations");
    lose("any_source", dump_.any_source, "receives that name no sender");
    lose("unknown_rank", dump_.rank < 0, "dumps whose name does not end in a rank");
    if (!dump_.cut.empty()) {
      lose("cut_file", 1, dump_.cut);
      lose(model::kLossIncompleteEnd, 1, "dump that ends early");
    }
    const uint64_t impossible = dump_.impossible + dump_.bad_entries;
    lose(model::kLossIncompleteEnd, impossible, "entries are unlike any that the recorder writes");
    lose(model::kLossUnproven, impossible > 0, "dump that is damaged");
  }

  const Dump& dump_;
  const int32_t world_;
  const int64_t written_ns_;
  Trace& trace_;
  size_t running_ = SIZE_MAX;  // of the entries
  uint64_t unplaced_ = 0;
  std::vector<model::GroupIndex> index_;  // by comm
  std::vector<uint32_t> p2ps_;            // by comm: sends and receives
  std::vector<model::StringId> places_;   // of the dump's
};

class Source : public model::TraceSource {
 public:
  static Result<std::unique_ptr<model::TraceSource>> open(std::vector<std::string> paths) {
    LOCKSTEP_ASSIGN(auto read, common::read_all(std::move(paths), "Flight Recorder dumps", read_dump));
    auto source = std::make_unique<Source>();
    source->dumps_ = std::move(read.files);
    source->bad_files_ = std::move(read.bad_files);
    source->name_ = std::move(read.name);
    // In this order: only dumps that are kept say who is in a group and how long operations waited.
    source->keep_newest();
    source->complete_groups();
    source->find_time();
    return std::unique_ptr<model::TraceSource>(std::move(source));
  }

  size_t processes() const override { return dumps_.size(); }
  Result<void> load(size_t i, Trace& trace) override {
    LOCKSTEP_CHECK(i < dumps_.size());
    TraceMaker(dumps_[i], world_, written_ns_, trace).make();
    return {};
  }
  void run_losses(Trace& trace) override {
    for (const std::string& file : bad_files_) trace.lose(kNoRow, "read", "unreadable_file", 1, file);
    if (guessed_time_) {
      trace.lose(
          kNoRow, "read", "dump_time", 1,
          "dumps do not say when they were written: assumed to be when the time limit of the oldest open operation had passed");
    }
    for (const std::string& file : older_)
      trace.lose(kNoRow, "read", "older_dump", 1, "a newer dump of its rank is there: " + file);
  }
  std::string name() const override { return name_; }

 private:
  // A rank that dumped twice: what it reported last.
  void keep_newest() {
    std::stable_sort(dumps_.begin(), dumps_.end(), [](const Dump& a, const Dump& b) {
      return std::pair(a.rank, -a.last_ns) < std::pair(b.rank, -b.last_ns);
    });
    std::vector<Dump> kept;
    for (Dump& dump : dumps_) {
      if (!kept.empty() && dump.rank >= 0 && kept.back().rank == dump.rank) {
        older_.push_back(dump.path);
      } else {
        kept.push_back(std::move(dump));
      }
    }
    dumps_ = std::move(kept);
  }

  void find_time() {
    int64_t last = 0;
    for (const Dump& dump : dumps_) {
      last = std::max(last, dump.last_ns);
      written_ns_ = std::max(written_ns_, flight_recorder::written_ns(dump));
    }
    guessed_time_ = written_ns_ > last;
  }

  // Before version 1.4 no dump said who is in a group: those who used it.
  void complete_groups() {
    std::map<std::string, std::vector<int32_t>> users;
    for (const Dump& dump : dumps_) {
      for (const Group& group : dump.groups) {
        if (dump.rank >= 0) users[group.name].push_back(dump.rank);
        // PyTorch's first group holds all ranks. A damaged dump may name any number of them.
        if (group.name == "0" && dump.impossible + dump.bad_entries == 0)
          world_ = std::max(world_, static_cast<int32_t>(group.ranks.size()));
      }
    }
    for (Dump& dump : dumps_) {
      for (Group& group : dump.groups) {
        // In order of ranks, as the dumps are: the same on all of them, so they become one communicator.
        if (group.ranks.empty()) group.ranks = users[group.name];
      }
    }
    if (world_ == 0) world_ = -1;
  }

  std::vector<Dump> dumps_;  // by rank
  std::vector<std::string> bad_files_, older_;
  int32_t world_ = 0;
  bool guessed_time_ = false;
  int64_t written_ns_ = 0;  // of all: one signal has every rank dump
  std::string name_;
};

}  // namespace

const Format kFormat = {
    .name = "flight_recorder",
    .summary = "Flight Recorder dumps",
    .sniff = sniff,
    .open = Source::open,
    .setting =
        "TORCH_FR_BUFFER_SIZE=2000 TORCH_FR_DUMP_ON_TIMEOUT=1 "
        "TORCH_FR_DUMP_TEMP_FILE=/shared/job/fr_ (names of older PyTorch: docs/inputs.md)",
    .reports_hangs = true};

}  // namespace lockstep::readers::flight_recorder
