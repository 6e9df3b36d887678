// SPDX-License-Identifier: Apache-2.0
// Opening may happen on any thread of the host, in the middle of its first communicator, and must never fail
// towards the host: where no file can be made the phase says so, one line goes to the host's logger, and
// every later call returns at once. The header is whole before the file's state becomes kOpen, so a reader of
// a process that is just starting sees either nothing or everything that is written once.
#include "capture/core/session/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/file/write_behind.h"
#include "capture/core/host/gpu_model.h"
#include "capture/core/locked.h"
#include "capture/core/log/chunk.h"
#include "capture/core/log/definition_writer.h"
#include "capture/core/log/thread_log.h"
#include "capture/core/version.h"
#include "format/seal.h"

namespace lockstep::capture {
namespace {

// g_lock guards definitions, g_growth the preparation of chunks. Whoever needs both takes them in this order;
// the keeper holds one at a time.
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER, g_growth = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> g_opening{false};

constexpr int64_t kMillisecond = 1000000;
constexpr int64_t kShortestNap = kMillisecond / 4, kLongestNap = 50 * kMillisecond;
constexpr int64_t kHeartbeat = 1000 * kMillisecond;
constexpr int64_t kLongestGoodbye = 1000 * kMillisecond;
// Anchors come early, so that a process that dies young has two, and then seldom.
constexpr int64_t kFirstAnchor = 100 * kMillisecond, kAnchorEvery = 10000 * kMillisecond;
// Chunks kept ready: 4 MiB hold what 1.5 million events a second fill in the longest nap.
constexpr uint32_t kLeastAhead = 128, kMostAhead = 8192, kMostPopulated = 1024;
// It goes into NCCL's log, and holds names from outside.
void make_printable(char* text) {
  for (; *text != 0; ++text) {
    const auto c = static_cast<unsigned char>(*text);
    if (c < 0x20 || c == 0x7f) *text = '?';
  }
}

}  // namespace

static constinit Session g_session;
static constinit WriteBehind g_writer;
Session& Session::get() { return g_session; }

bool Session::open(format::Source source, Steering steering) {
  // Callers come back for every call that finds no log: once the phase has settled, this is one load.
  Phase phase = phase_.load(std::memory_order_acquire);
  if (phase != Phase::kIdle) return phase == Phase::kRunning;
  Locked locked(&g_lock);
  if (phase_.load(std::memory_order_relaxed) != Phase::kIdle) return running();
  // A child that is forked in the middle has a half-made session, and its phase does not say so.
  g_opening.store(true, std::memory_order_relaxed);
  steering_ = steering;
  bool started = start_locked(source);
  g_opening.store(false, std::memory_order_relaxed);
  return started;
}

bool Session::start_locked(format::Source source) {
  uint64_t tick_hz = choose_host_clock();
  // As early as possible: the farther it lies from the first anchor, the better the first estimate of the
  // rate.
  const format::ClockAnchor early = take_anchor();
  Identity identity = read_identity();
  config_ = read_config(identity);
  pid_ = identity.pid;
  if (config_.mode == format::Mode::kOff) {
    phase_.store(Phase::kOff, std::memory_order_release);
    return false;
  }
  char why[1500];
  if (!file_.create(config_, identity, source, why, sizeof why)) {
    snprintf(message_, sizeof message_, "lockstep: capture is off: %s", why);
    message_is_warning_ = true;
    publish_message();
    phase_.store(Phase::kFailed, std::memory_order_release);
    return false;
  }
  format::FileHeader* header = file_.header();
  store_identity(identity, header);
  header->host_clock = g_host_clock;
  header->tick_hz = tick_hz;
  header->first_anchor = take_anchor();
  if (tick_hz == 0) {
    // Good to a few hundred ppm, for a process that dies before the keeper has taken the next anchor.
    auto ticks = static_cast<double>(header->first_anchor.ticks - early.ticks);
    auto ns = static_cast<double>(header->first_anchor.monotonic_ns - early.monotonic_ns);
    header->tick_hz = ns > 0 ? static_cast<uint64_t>(ticks * 1e9 / ns) : 0;
  }
  auto mix = (header->first_anchor.ticks ^ static_cast<uint64_t>(identity.pid) << 32 ^ identity.start_ticks) *
             0x9e3779b97f4a7c15;
  // The top bit keeps contexts apart from user-space addresses, whatever process they come from.
  header->process_tag = process_tag_ = static_cast<uint32_t>(mix >> 32) | 0x80000000u;
  copy_text(header->tool_version, kVersion);
  copy_text(header->segment, file_.segment().name());
  header->segment_descriptor = file_.segment().descriptor();
  header->segment_key = mix ^ static_cast<uint64_t>(header->first_anchor.realtime_ns) * 0x9e3779b97f4a7c15;
  header->seal = format::seal_of_header(*header);
  beat();
  uint32_t meta = file_.claim_chunk();
  meta_ = file_.chunk(meta);
  auto* chunk = reinterpret_cast<format::ChunkHeader*>(meta_);
  chunk->purpose = format::Purpose::kMeta;
  chunk->claimed_ticks = header->first_anchor.ticks;
  chunk->tid = static_cast<uint32_t>(identity.pid);
  __atomic_store_n(&chunk->magic, format::kChunkMagic, __ATOMIC_RELEASE);
  meta_used_ = sizeof(format::ChunkHeader);
  control_.start(config_, header);
  add_mode_locked(format::ModeReason::kStart);
  if (steering_.record != nullptr) steering_.record(control_.now());
  ThreadLog::prepare();
  file_.set_state(format::FileState::kOpen);
  phase_.store(Phase::kRunning, std::memory_order_release);
  // From here on adopters take the segment for ours, so all that they read of it is there.
  file_.segment().publish(file_.own_file(), header->segment_key);
  const bool has_writer = g_writer.start(&file_, [] { g_session.keeper_bell_.ring(); });
  const int no_keeper = start_thread(keeper, this);
  char without[200] = "";
  if (file_.segment().name()[0] == 0)
    snprintf(without, sizeof without,
             "; memory here does not outlive the process: a kill costs what it recorded in its last %d ms, "
             "unless lockstep trace started it",
             static_cast<int>(write_every_ns(file_) / kMillisecond));
  if (no_keeper != 0)
    snprintf(without, sizeof without,
             "; no thread can be started (%s): what its file has no room for by now is not recorded",
             strerror(no_keeper));
  snprintf(message_, sizeof message_, "lockstep: writing %s%s%s%s", file_.path(),
           config_.problem[0] != 0 ? "; " : "", config_.problem, without);
  message_is_warning_ = config_.problem[0] != 0 || no_keeper != 0 || !has_writer;
  publish_message();
  return true;
}

void Session::publish_message() {
  make_printable(message_);
  message_ready_.store(true, std::memory_order_release);
}

const char* Session::take_message(bool* is_warning) {
  if (!message_ready_.exchange(false, std::memory_order_acq_rel)) return nullptr;
  *is_warning = message_is_warning_;
  return message_;
}

// Uncleared.
char* Session::room_locked(size_t bytes) {
  if (meta_used_ + bytes > format::kLastUnit * format::kUnitBytes) {
    // Many definitions in one go (a million comms) outrun the keeper; this is not the event path.
    uint32_t index = file_.make_chunk();
    if (index == kNoChunk) {
      lose(kLoss_meta_full);
      return nullptr;
    }
    name_next(meta_, index);
    meta_ = open_chunk(index, format::Purpose::kMeta, ++meta_no_, {0, 0});
    meta_used_ = sizeof(format::ChunkHeader);
  }
  char* at = meta_ + meta_used_;
  meta_used_ += static_cast<uint32_t>(bytes);
  return at;
}

template <class Definition>
Definition* Session::define_locked() {
  char* at = room_locked(sizeof(Definition));
  return at != nullptr ? clear_definition<Definition>(at) : nullptr;
}

void Session::note_gpu(const CommInfo& info) {
  if (info.pci[0] == 0 || has_gpu_.exchange(true, std::memory_order_relaxed)) return;
  const GpuModel model = read_gpu_model(info.pci);
  if (model.text[0] != 0) add_note(format::kNoteGpuModel, model.text);
}

uint32_t Session::add_comm(const CommInfo& info) {
  if (!running()) return format::kNoComm;
  // Before the lock: it reads files.
  note_gpu(info);
  Locked locked(&g_lock);
  auto* comm = define_locked<format::CommDef>();
  if (comm == nullptr) return format::kNoComm;
  comm->comm_id = info.comm_id;
  comm->rank = info.rank;
  comm->ranks = info.ranks;
  comm->nodes = info.nodes;
  comm->api_version = info.api_version;
  comm->tid = static_cast<uint32_t>(syscall(SYS_gettid));
  comm->device = info.device;
  memcpy(comm->pci, info.pci, sizeof comm->pci);
  memcpy(comm->uuid, info.uuid, sizeof comm->uuid);
  copy_text(comm->name, info.name);
  uint32_t index = comms_.load(std::memory_order_relaxed);
  publish_definition(comm, format::Def::kComm, index);
  // Last: event threads accept a number below this one, and records must not name what is not defined.
  comms_.store(index + 1, std::memory_order_release);
  return index;
}

void Session::end_comm(uint32_t comm) {
  if (!running()) return;
  Locked locked(&g_lock);
  if (auto* end = define_locked<format::CommEndDef>()) publish_definition(end, format::Def::kCommEnd, comm);
}

void Session::identify_comm(uint32_t comm, uint64_t comm_id, const char* name) {
  if (!running()) return;
  Locked locked(&g_lock);
  auto* identity = define_locked<format::CommIdentityDef>();
  if (identity == nullptr) return;
  identity->comm_id = comm_id;
  copy_text(identity->name, name);
  publish_definition(identity, format::Def::kCommIdentity, comm);
}

void Session::add_group(uint32_t comm, const GroupDeclaration& declared) {
  if (!running()) return;
  Locked locked(&g_lock);
  auto* group = define_locked<format::GroupDef>();
  if (group == nullptr) return;
  group->start = declared.start;
  group->stride = declared.stride;
  group->rank = declared.rank;
  group->is_apart = declared.description != nullptr;
  copy_text(group->name, declared.name);
  copy_text(group->description, declared.description);
  publish_definition(group, format::Def::kGroup, comm);
}

void Session::add_group_ranks(uint32_t comm, const int32_t* ranks, uint32_t count) {
  if (!running()) return;
  Locked locked(&g_lock);
  constexpr uint32_t kPiece = sizeof(format::GroupRanksDef::ranks) / sizeof(int32_t);
  for (uint32_t first = 0; first < count; first += kPiece) {
    auto* piece = define_locked<format::GroupRanksDef>();
    if (piece == nullptr) return;
    piece->first = first;
    piece->n = count - first < kPiece ? count - first : kPiece;
    memcpy(piece->ranks, ranks + first, piece->n * sizeof(int32_t));
    publish_definition(piece, format::Def::kGroupRanks, comm);
  }
}

void Session::add_note(const char* key, const char* value) {
  if (!running()) return;
  Locked locked(&g_lock);
  auto* note = define_locked<format::NoteDef>();
  if (note == nullptr) return;
  copy_text(note->key, key);
  copy_text(note->value, value);
  publish_definition(note, format::Def::kNote, 0);
}

void Session::add_definition(format::Def kind, uint32_t id, const format::DefHead* definition, size_t bytes) {
  if (!running()) return;
  Locked locked(&g_lock);
  char* at = room_locked(bytes);
  if (at == nullptr) return;
  auto* made = clear_definition<format::CommEndDef>(at, bytes);  // a head
  if (definition->ticks != 0) made->head.ticks = definition->ticks;
  memcpy(at + sizeof *definition, reinterpret_cast<const char*>(definition + 1), bytes - sizeof *definition);
  publish_definition(made, kind, id, bytes);
}

void Session::add_name(format::Def kind, uint32_t id, const char* text) {
  if (!running()) return;
  const size_t length = strnlen(text, format::kMaxKernelNameBytes - 1);
  const size_t bytes = sizeof(format::DefHead) + (length / format::kUnitBytes + 1) * format::kUnitBytes;
  Locked locked(&g_lock);
  char* at = room_locked(bytes);
  if (at == nullptr) return;
  auto* name = clear_definition<format::NameDef>(at, bytes);
  memcpy(at + offsetof(format::NameDef, name), text, length);
  publish_definition(name, kind, id, bytes);
}

void Session::set_event_mask(uint32_t mask, bool waiting) {
  format::FileHeader* header = file_.header();
  __atomic_store_n(&header->event_mask, mask, __ATOMIC_RELAXED);
  __atomic_store_n(&header->in_force.waiting, waiting ? 1u : 0u, __ATOMIC_RELAXED);
}

void Session::add_mode_locked(format::ModeReason reason) {
  auto* mode = define_locked<format::ModeDef>();
  if (mode == nullptr) return;
  const Recording& recording = control_.now();
  mode->mode = static_cast<uint32_t>(recording.mode);
  mode->keep = recording.keep;
  mode->of = recording.of;
  mode->comms = recording.comms;
  mode->min_bytes = recording.min_bytes;
  mode->until_monotonic_ns = control_.until_ns();
  mode->reason = reason;
  publish_definition(mode, format::Def::kMode, 0);
}

// Off the lock but for the definition: what a request changes may wait for other threads.
void Session::look_at_control() {
  const Control::Seen seen = control_.look(file_.header(), clock_ns(CLOCK_MONOTONIC));
  if (seen.refused) lose(kLoss_bad_control);
  if (seen.mark) {
    if (ThreadLog* log = ThreadLog::get()) log->append_mark(seen.text);
  }
  if (seen.changed) {
    if (steering_.record != nullptr) steering_.record(control_.now());
    Locked locked(&g_lock);
    if (running())
      add_mode_locked(seen.window_ended ? format::ModeReason::kWindowEnd : format::ModeReason::kControl);
  }
  if (steering_.apply_pending != nullptr) steering_.apply_pending();
  if (control_.answer(file_.header())) g_writer.answer(seen.save);
}

void Session::lose(Loss kind) {
  if (!file_.usable()) return;
  __atomic_fetch_add(format::loss_counter(file_.header(), kind), 1, __ATOMIC_RELAXED);
}

Loss Session::loss_of_no_place() const {
  Loss why = kLoss_no_chunk;
  if (file_.at_cap() || file_.state() == format::FileState::kSizeCap) return kLoss_size_cap;
  // The places of a ring come back from its logs, not from the writer: storage is not the cause.
  if (file_.ring()) return why;
  g_writer.trouble(&why);
  return why;
}

void* Session::keeper(void* self) {
  prctl(PR_SET_NAME, "lockstep");
  static_cast<Session*>(self)->keep();
  return nullptr;
}

void Session::thread_registered() {
  if (!file_.ring() && file_.unclaimed() < kLeastAhead / 2) keeper_bell_.ring();
}

void Session::beat() {
  format::FileHeader* header = file_.header();
  __atomic_store_n(&header->heartbeat_realtime_ns, clock_ns(CLOCK_REALTIME), __ATOMIC_RELAXED);
  __atomic_store_n(&header->heartbeat_monotonic_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
  __atomic_store_n(&header->heartbeat_ticks, read_ticks(), __ATOMIC_RELEASE);
}

void Session::prepare_chunks(uint32_t ahead) {
  Locked locked(&g_growth);
  if (!running()) return;
  if (!file_.ring() && file_.state() != format::FileState::kSizeCap) file_.allocate_ahead(ahead);
  file_.populate_ahead(ahead < kMostPopulated || file_.ring() ? ahead : kMostPopulated);
  const uint32_t free = file_.unclaimed();
  __atomic_store_n(&file_.header()->chunks_ready, file_.claimed() + free, __ATOMIC_RELAXED);
  if (!file_.ring() && free < ahead / 2) g_writer.wake();
}

void Session::keep() {
  int64_t interval = kShortestNap, last_beat = 0;
  int64_t anchor_every = kFirstAnchor, last_anchor = clock_ns(CLOCK_MONOTONIC);
  uint32_t ahead = kLeastAhead, before = file_.claimed();
  for (;;) {
    const uint32_t calls = keeper_bell_.calls();
    if (!running()) return;
    uint32_t used = file_.claimed() - before;
    before += used;
    // Every thread may fill its chunk at the same time.
    const uint32_t least = kLeastAhead + ThreadLog::threads();
    // Enough when what one nap consumes is a sixteenth of what is kept ready.
    if (used * 16 > ahead)
      ahead = used * 16 < kMostAhead ? used * 16 : kMostAhead;
    else if (used * 64 < ahead && ahead > least)
      ahead -= (ahead - least + 7) / 8;
    if (ahead < least) ahead = least;
    interval = used > 0 ? kShortestNap : interval * 2 < kLongestNap ? interval * 2 : kLongestNap;
    prepare_chunks(ahead);
    look_at_control();
    {
      Locked locked(&g_lock);
      if (!running()) return;
      int64_t now = clock_ns(CLOCK_MONOTONIC);
      if (now - last_beat >= kHeartbeat) {
        beat();
        __atomic_store_n(&file_.header()->chunks_claimed, file_.claimed(), __ATOMIC_RELAXED);
        last_beat = now;
      }
      if (now - last_anchor >= anchor_every) {
        if (auto* anchor = define_locked<format::AnchorDef>()) {
          anchor->anchor = take_anchor();
          publish_definition(anchor, format::Def::kAnchor, 0);
        }
        last_anchor = now;
        anchor_every = anchor_every * 10 < kAnchorEvery ? anchor_every * 10 : kAnchorEvery;
      }
    }
    keeper_bell_.nap(calls, interval);
  }
}

void Session::close() {
  if (!running()) return;
  // A thread that called exit() while it held a lock, and a file system that hangs, must not keep the host
  // from ending; the file is readable unclosed, too.
  const int64_t deadline = clock_ns(CLOCK_MONOTONIC) + kLongestGoodbye;
  if (!lock_until(&g_lock, deadline)) return;
  if (lock_until(&g_growth, deadline)) {
    // The last anchor bounds the line by which the last ticks become time. It needs a chunk, so it comes
    // before the file closes.
    if (auto* anchor = define_locked<format::AnchorDef>()) {
      anchor->anchor = take_anchor();
      publish_definition(anchor, format::Def::kAnchor, 0);
    }
    beat();
    phase_.store(Phase::kClosed, std::memory_order_release);
    file_.close();
    keeper_bell_.ring();
    pthread_mutex_unlock(&g_growth);
  }
  pthread_mutex_unlock(&g_lock);
  if (phase() == Phase::kClosed) g_writer.finish(deadline);
}

// The child has one thread and a copy of our state, but the parent's file: it keeps its hands off that,
// except that events it loses are counted in the shared header.
void Session::after_fork_in_child() {
  // Whoever held them is not in the child.
  g_lock = g_growth = PTHREAD_MUTEX_INITIALIZER;
  bool was_opening = g_opening.exchange(false, std::memory_order_relaxed);
  if (g_session.phase() != Phase::kRunning && !was_opening) return;
  ThreadLog::forget_current();
  g_session.file_.abandon();
  g_session.phase_.store(Phase::kForked, std::memory_order_release);
}

void Session::watch_forks() { pthread_atfork(nullptr, nullptr, after_fork_in_child); }

__attribute__((constructor)) static void at_load() { Session::watch_forks(); }
__attribute__((destructor)) static void at_exit() { Session::get().close(); }

}  // namespace lockstep::capture
