// SPDX-License-Identifier: Apache-2.0
#include "capture/core/thread_log.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/definition_writer.h"
#include "capture/core/session.h"
#include "format/element_size.h"

namespace lockstep::capture {

constinit thread_local ThreadLog* ThreadLog::tls_log = nullptr;

// All zero at load, so that it costs no memory until a slot is used.
struct LogTable {
  ThreadLog logs[format::kMaxLogs];
  uint32_t used;   // slots ever used
  uint32_t taken;  // slots in use now
  pthread_key_t key;
  uint32_t key_state;  // 0 none, 1 being made, 2 ready

  // A key whose destructor frees a thread's slot. Without one (keys ran out) slots are simply not reused.
  void make_key() {
    uint32_t none = 0;
    if (!__atomic_compare_exchange_n(&key_state, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    if (pthread_key_create(&key, ThreadLog::release) == 0) __atomic_store_n(&key_state, 2, __ATOMIC_RELEASE);
  }
  ThreadLog* take_slot() {
    if (__atomic_load_n(&taken, __ATOMIC_RELAXED) >= format::kMaxLogs) return nullptr;
    for (uint32_t slot = 0; slot < format::kMaxLogs; ++slot) {
      bool free = false;
      if (__atomic_load_n(&logs[slot].in_use_, __ATOMIC_RELAXED) ||
          !__atomic_compare_exchange_n(&logs[slot].in_use_, &free, true, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED)) {
        continue;
      }
      __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
      uint32_t seen = __atomic_load_n(&used, __ATOMIC_RELAXED);
      while (seen < slot + 1 &&
             !__atomic_compare_exchange_n(&used, &seen, slot + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      }
      return &logs[slot];
    }
    return nullptr;
  }
  void give_back(ThreadLog* log) {
    __atomic_store_n(&log->in_use_, false, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&taken, 1, __ATOMIC_RELAXED);
  }
};
static LogTable g_table;

static Loss loss_of_no_chunk() {
  if (Session::get().phase() == Phase::kClosed) return kLoss_closed;
  return Session::get().loss_of_no_place();
}

uint64_t ThreadLog::window_begin(uint32_t log) {
  return log == 0 ? 0 : __atomic_load_n(&g_table.logs[log - 1].oldest_in_window_, __ATOMIC_ACQUIRE);
}

uint32_t ThreadLog::threads() { return __atomic_load_n(&g_table.taken, __ATOMIC_RELAXED); }

void ThreadLog::release(void* log) {
  tls_log = nullptr;
  static_cast<ThreadLog*>(log)->leave_window();
  g_table.give_back(static_cast<ThreadLog*>(log));
}

ThreadLog* ThreadLog::register_thread() {
  Session& session = Session::get();
  if (!session.running()) {
    if (session.phase() == Phase::kClosed) session.lose(kLoss_closed);
    if (session.phase() == Phase::kForked) session.lose(kLoss_after_fork);
    return nullptr;
  }
  g_table.make_key();
  ThreadLog* log = g_table.take_slot();
  if (log == nullptr) {
    session.lose(kLoss_no_log);
    return nullptr;
  }
  log->tid_ = static_cast<uint32_t>(syscall(SYS_gettid));
  if (!log->started_ && !log->start(static_cast<uint32_t>(log - g_table.logs) + 1)) {
    g_table.give_back(log);
    session.lose(loss_of_no_chunk());
    return nullptr;
  }
  session.thread_registered();
  log->adopt_thread();
  if (__atomic_load_n(&g_table.key_state, __ATOMIC_ACQUIRE) == 2) pthread_setspecific(g_table.key, log);
  tls_log = log;
  return log;
}

// The thread fills nothing in any more.
void ThreadLog::leave_window() {
  if (!Session::get().file().ring()) __atomic_store_n(&oldest_in_window_, chunk_no_, __ATOMIC_RELEASE);
}

ThreadLog::Issued ThreadLog::look_up(uint64_t handle) {
  const uint32_t id = format::handle_log(handle);
  const uint64_t position = format::handle_position(handle), chunk_no = position / format::kUnitsPerChunk;
  if (id == 0 || id > __atomic_load_n(&g_table.used, __ATOMIC_RELAXED) ||
      !format::is_event(static_cast<uint8_t>(format::handle_kind(handle))) ||
      position % format::kUnitsPerChunk < format::kChunkHeaderUnits) {
    return Issued::kNever;
  }
  const ThreadLog& log = g_table.logs[id - 1];
  if (chunk_no > __atomic_load_n(&log.newest_chunk_no_, __ATOMIC_RELAXED)) return Issued::kNever;
  if (chunk_no >= __atomic_load_n(&log.oldest_chunk_no_, __ATOMIC_RELAXED)) return Issued::kKept;
  for (const MovedEvent& event : log.moved_) {
    if (__atomic_load_n(&event.issued, __ATOMIC_RELAXED) == handle) return Issued::kKept;
  }
  return Issued::kOverwritten;
}

ThreadLog* ThreadLog::log_for_late(uint64_t handle) {
  ThreadLog* log = get();
  if (log == nullptr) return nullptr;
  const Issued issued = look_up(handle);
  if (issued == Issued::kKept) return log;
  log->lose(issued == Issued::kOverwritten ? kLoss_stale_target : kLoss_unknown_handle);
  return nullptr;
}

uint64_t ThreadLog::moved(uint64_t handle) const {
  for (const MovedEvent& event : moved_) {
    if (event.issued == handle) return event.now;
  }
  return 0;
}

// Ends that were noted, a bit for each unit of a log's chunks. Its chunks have numbers in a row: by their remainder none
// shares its bits with another, as two of them may lie beside the ring.
namespace {
constexpr uint32_t kEndsOfWord = 64, kWordsOfChunk = format::kUnitsPerChunk / kEndsOfWord;

uint64_t chunks_with_ends() { return Session::get().file().cap_chunks() + 2; }
uint64_t* ends_of_chunk(uint64_t* ends, uint64_t chunk_no) {
  return ends + chunk_no % chunks_with_ends() * kWordsOfChunk;
}
uint64_t* word_of_end(uint64_t* ends, uint64_t position) {
  return ends_of_chunk(ends, position / format::kUnitsPerChunk) +
         position % format::kUnitsPerChunk / kEndsOfWord;
}
uint64_t bit_of_end(uint64_t position) { return uint64_t{1} << position % kEndsOfWord; }
}  // namespace

// Of an event that is just being overwritten it may come too late: the bit is then the next one's there, which is
// overwritten and counted, or the event moves on as one that never ends.
void ThreadLog::note_end(uint64_t handle) {
  ThreadLog& log = g_table.logs[format::handle_log(handle) - 1];
  for (MovedEvent& event : log.moved_) {
    if (__atomic_load_n(&event.issued, __ATOMIC_RELAXED) == handle)
      return __atomic_store_n(&event.ended, handle, __ATOMIC_RELAXED);
  }
  uint64_t* ends = __atomic_load_n(&log.ends_, __ATOMIC_ACQUIRE);
  if (ends == nullptr) {
    const size_t bytes = chunks_with_ends() * kWordsOfChunk * sizeof *ends;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    auto* made = static_cast<uint64_t*>(memory);
    if (__atomic_compare_exchange_n(&log.ends_, &ends, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      ends = made;
    } else {
      munmap(memory, bytes);  // another thread was faster
    }
  }
  const uint64_t position = format::handle_position(handle);
  __atomic_fetch_or(word_of_end(ends, position), bit_of_end(position), __ATOMIC_RELAXED);
}

bool ThreadLog::has_noted_end(uint64_t handle) const {
  for (const MovedEvent& event : moved_) {
    if (event.issued != 0 && event.now == handle)
      return __atomic_load_n(&event.ended, __ATOMIC_RELAXED) == event.issued;
  }
  uint64_t* ends = __atomic_load_n(&ends_, __ATOMIC_ACQUIRE);
  if (ends == nullptr) return false;
  const uint64_t position = format::handle_position(handle);
  return (__atomic_load_n(word_of_end(ends, position), __ATOMIC_RELAXED) & bit_of_end(position)) != 0;
}

void ThreadLog::forget_ends(uint64_t chunk_no) {
  uint64_t* ends = __atomic_load_n(&ends_, __ATOMIC_ACQUIRE);
  if (ends == nullptr) return;
  uint64_t* words = ends_of_chunk(ends, chunk_no);
  for (uint32_t i = 0; i < kWordsOfChunk; ++i) __atomic_store_n(&words[i], uint64_t{0}, __ATOMIC_RELAXED);
}

bool ThreadLog::start(uint32_t id) {
  ProcessFile& file = Session::get().file();
  uint32_t defs = file.make_chunk();
  uint32_t records = defs == kNoChunk ? kNoChunk : file.make_chunk();
  if (records == kNoChunk) return false;
  id_ = id;
  next_shape_ = next_stream_ = kernel_names_.next = range_names_.next = 1;
  defs_ = open_chunk(defs, format::Purpose::kDefs, 0);
  defs_used_ = sizeof(format::ChunkHeader);
  auto* info = define<format::LogDef>();
  losses_ = info->losses;
  publish_definition(info, format::Def::kLog, id_);
  oldest_index_ = records;
  owned_ = 1;
  chunk_ = open_chunk(records, format::Purpose::kRecords, 0);
  chunk_no_ = 0;
  __atomic_store_n(&oldest_in_window_, uint64_t{0}, __ATOMIC_RELAXED);
  window_[0] = chunk_;
  cursor_ = chunk_ + sizeof(format::ChunkHeader);
  limit_ = chunk_ + uint64_t{format::kLastUnit} * format::kUnitBytes;
  handle_base_ = uint64_t{id_} << format::kHandlePositionBits;
  spare_index_ = kNoChunk;
  if (file.ring()) {
    spare_index_ = file.make_chunk();
    start_histogram(file.make_chunk());
  }
  started_ = true;
  return true;
}

void ThreadLog::start_histogram(uint32_t index) {
  if (index == kNoChunk) return;
  char* chunk = Session::get().file().chunk(index);
  memset(chunk + sizeof(format::ChunkHeader), 0, format::kChunkBytes - sizeof(format::ChunkHeader));
  histogram_ = open_chunk(index, format::Purpose::kHistogram, 0);
}

void ThreadLog::adopt_thread() {
  ++owner_;
  auto* thread = define<format::ThreadDef>();
  if (thread == nullptr) return;
  thread->from_position = format::handle_position(handle_at(cursor_, format::Kind::kNone));
  prctl(PR_GET_NAME, thread->name);
  thread->pthread = reinterpret_cast<uint64_t>(pthread_self());
  publish_definition(thread, format::Def::kThread, tid_);
}

char* ThreadLog::open_chunk(uint32_t index, format::Purpose purpose, uint32_t chunk_no) {
  char* chunk = Session::get().file().chunk(index);
  auto* header = reinterpret_cast<format::ChunkHeader*>(chunk);
  __atomic_store_n(&header->magic, 0u, __ATOMIC_RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  header->purpose = purpose;
  header->log = static_cast<uint16_t>(id_);
  header->chunk_no = chunk_no;
  header->next = 0;
  header->records = 0;
  header->claimed_ticks = read_ticks();
  header->tid = tid_;
  auto* first = reinterpret_cast<uint64_t*>(chunk + sizeof(format::ChunkHeader) +
                                            offsetof(format::RecordHead, stop_after));
  __atomic_store_n(first, uint64_t{0}, __ATOMIC_RELAXED);
  __atomic_store_n(&header->magic, format::kChunkMagic, __ATOMIC_RELEASE);
  return chunk;
}

// Events that were open in a chunk which is overwritten, while they have no place in the file.
struct ThreadLog::OpenEvents {
  uint32_t count = 0;
  struct {
    uint64_t handle;
    char bytes[sizeof(format::ApiOpRecord)];
  } events[kMoved];
};

// The oldest chunk of records, whose content goes, but for what is still open.
uint32_t ThreadLog::drop_oldest(OpenEvents* open) {
  const uint32_t index = oldest_index_;
  const char* chunk = Session::get().file().chunk(index);
  const auto* header = reinterpret_cast<const format::ChunkHeader*>(chunk);
  const uint64_t base = uint64_t{header->chunk_no} * format::kUnitsPerChunk;
  uint64_t kept = 0;
  for (uint32_t unit = format::kChunkHeaderUnits; unit < format::kLastUnit;) {
    const char* at = chunk + unit * format::kUnitBytes;
    const auto* head = reinterpret_cast<const format::RecordHead*>(at);
    const auto kind = static_cast<uint8_t>(head->kind);
    const uint32_t bytes = format::record_bytes(kind);
    if (bytes == 0) break;
    const bool is_open = head->stop_after == 0 && (head->flags & format::kFlagStopped) == 0;
    const uint64_t handle = format::make_handle(kind, id_, base + unit);
    if (is_open && format::is_event(kind) && open->count < kMoved && !has_noted_end(handle)) {
      auto& event = open->events[open->count++];
      event.handle = handle;
      memcpy(event.bytes, at, bytes);
      ++kept;
    }
    kept += head->kind == format::Kind::kLink &&
            (head->flags & format::kFlagMoved) != 0;  // says nothing of its own
    unit += bytes / format::kUnitBytes;
  }
  forget_ends(header->chunk_no);
  __atomic_store_n(&losses_[kLoss_overwritten], losses_[kLoss_overwritten] + header->records - kept,
                   __ATOMIC_RELAXED);
  if (owned_ > 1) oldest_index_ = header->next;
  --owned_;
  return index;
}

// The next chunk for records; in ring retention, when the log has its share, its own oldest one.
uint32_t ThreadLog::take_chunk(OpenEvents* open) {
  ProcessFile& file = Session::get().file();
  uint32_t index = spare_index_;
  spare_index_ = kNoChunk;
  if (index == kNoChunk) index = file.ring() ? file.claim_share(owned_) : file.claim_chunk();
  if (index == kNoChunk && file.ring()) {
    if (owned_ > 2 && file.exceeds_share(owned_)) file.give_back(drop_oldest(open));
    index = drop_oldest(open);
  }
  if (index != kNoChunk) ++owned_;
  return index;
}

// Writes open events again, at the cursor, each with a record that says which handle the host knows it by.
void ThreadLog::move_open(const OpenEvents& open) {
  for (MovedEvent& event : moved_) {
    bool still = false;
    for (uint32_t i = 0; i < open.count; ++i) still |= open.events[i].handle == event.now;
    const uint64_t chunk_no = format::handle_position(event.now) / format::kUnitsPerChunk;
    if (!still && chunk_no < oldest_chunk_no_) __atomic_store_n(&event.issued, uint64_t{0}, __ATOMIC_RELAXED);
  }
  for (uint32_t i = 0; i < open.count; ++i) {
    const auto& event = open.events[i];
    MovedEvent* entry = nullptr;
    for (MovedEvent& known : moved_) {
      if (known.issued != 0 && known.now == event.handle) entry = &known;
    }
    for (MovedEvent& free : moved_) {
      if (entry == nullptr && free.issued == 0) entry = &free;
    }
    if (entry == nullptr) {
      lose(kLoss_overwritten);
      continue;
    }
    const uint64_t issued = entry->issued != 0 ? entry->issued : event.handle;
    entry->now = append_moved(event.bytes);
    __atomic_store_n(&entry->issued, issued, __ATOMIC_RELAXED);
    auto* link = reinterpret_cast<format::LinkRecord*>(cursor_);
    link->head.start = 0;
    link->child = entry->now;
    link->parent = issued;
    publish(link, format::Kind::kLink, format::kFlagMoved, 0);
  }
}

// A copy of an event's record. Its parent was older still, and has gone.
uint64_t ThreadLog::append_moved(const char* bytes) {
  format::RecordHead head;
  memcpy(&head, bytes, sizeof head);
  const auto kind = static_cast<uint8_t>(head.kind);
  char* at = cursor_;
  memcpy(at + sizeof head, bytes + sizeof head, format::record_bytes(kind) - sizeof head);
  auto* record = reinterpret_cast<format::RecordHead*>(at);
  record->start = head.start;
  switch (head.kind) {
    case format::Kind::kColl:
      reinterpret_cast<format::CollRecord*>(at)->group_link = 0;
      break;
    case format::Kind::kShortColl:
      reinterpret_cast<format::ShortCollRecord*>(at)->group_link = 0;
      break;
    case format::Kind::kP2p:
      reinterpret_cast<format::P2pRecord*>(at)->group_link = 0;
      break;
    default:
      break;
  }
  const bool is_channel = head.kind == format::Kind::kKernelCh || head.kind == format::Kind::kKernelPhase;
  return publish_bytes(at, format::record_bytes(kind), head.kind, head.flags, is_channel ? head.link : 0, 0);
}

char* ThreadLog::next_chunk() {
  ProcessFile& file = Session::get().file();
  auto* full = reinterpret_cast<format::ChunkHeader*>(chunk_);
  full->records = records_;
  OpenEvents open;
  uint32_t index = take_chunk(&open);
  if (index == kNoChunk) {
    const Loss why = loss_of_no_chunk();
    why < format::kLossKinds ? lose(why) : Session::get().lose(why);
    return nullptr;
  }
  ++chunk_no_;
  if (owned_ > 1) full->next = file.number(index);
  __atomic_store_n(&oldest_chunk_no_, chunk_no_ + 1 - owned_, __ATOMIC_RELAXED);
  chunk_ = open_chunk(index, format::Purpose::kRecords, static_cast<uint32_t>(chunk_no_));
  window_[chunk_no_ % kWindow] = chunk_;
  move_window(owned_);
  cursor_ = chunk_ + sizeof(format::ChunkHeader);
  limit_ = chunk_ + uint64_t{format::kLastUnit} * format::kUnitBytes;
  handle_base_ = uint64_t{id_} << format::kHandlePositionBits | chunk_no_ * format::kUnitsPerChunk;
  records_ = 0;
  __atomic_store_n(&newest_chunk_no_, chunk_no_, __ATOMIC_RELAXED);
  if (file.ring()) move_open(open);
  return cursor_;
}

// The newest chunks, in which events can be filled in. In stream retention they hold places that others may need: a log keeps
// a quarter of what is free, and never fewer than two chunks, as what was located before the next one is filled in after it.
void ThreadLog::move_window(uint32_t most) {
  const ProcessFile& file = Session::get().file();
  if (most > kWindow) most = kWindow;
  if (!file.ring() && most > 2) {
    const uint32_t share = file.unclaimed() / 4;
    if (most > share) most = share > 2 ? share : 2;
  }
  uint64_t begin = chunk_no_ + 1 - most;
  if (begin < oldest_in_window_) begin = oldest_in_window_;
  __atomic_store_n(&oldest_in_window_, begin, __ATOMIC_RELEASE);
}

// Uncleared; nullptr if there is no chunk for it.
char* ThreadLog::room_for_definition(size_t bytes) {
  if (defs_used_ + bytes > format::kLastUnit * format::kUnitBytes) {
    uint32_t index = Session::get().file().claim_chunk();
    if (index == kNoChunk) return nullptr;
    reinterpret_cast<format::ChunkHeader*>(defs_)->next = Session::get().file().number(index);
    defs_ = open_chunk(index, format::Purpose::kDefs, ++defs_no_);
    defs_used_ = sizeof(format::ChunkHeader);
  }
  char* at = defs_ + defs_used_;
  defs_used_ += static_cast<uint32_t>(bytes);
  return at;
}

template <class Definition>
Definition* ThreadLog::define() {
  char* at = room_for_definition(sizeof(Definition));
  return at != nullptr ? clear_definition<Definition>(at) : nullptr;
}

ShapeRef ThreadLog::define_shape(const ShapeKey& key) {
  ShapeRef ref{format::kShapeUnknown, format::element_bytes(key.datatype)};
  if (next_shape_ < format::kShapeUnknown) {
    if (auto* shape = define<format::ShapeDef>()) {
      shape->root = key.root;
      copy_text(shape->func, key.func);
      copy_text(shape->datatype, key.datatype);
      copy_text(shape->algo, key.algo);
      copy_text(shape->proto, key.proto);
      ref.id = static_cast<uint16_t>(next_shape_++);
      publish_definition(shape, format::Def::kShape, ref.id);
    }
  }
  return ref;
}

// A key that cannot be defined is not remembered: each operation that has to do without its shape is counted.
ShapeRef ThreadLog::find_shape(const ShapeKey& key) {
  uint64_t hash = hash_of(key);
  const ShapeRef* known = known_shapes_.find(key, hash);
  ShapeRef ref = known != nullptr ? *known : define_shape(key);
  if (ref.id == format::kShapeUnknown) {
    lose(kLoss_shape_table_full);
    return ref;
  }
  if (known == nullptr) known_shapes_.add(key, hash, ref);
  shapes_[hash >> 58] = {key, ref};
  return ref;
}

uint16_t ThreadLog::define_stream(uint64_t stream) {
  if (next_stream_ >= 0xffff) return 0;
  auto* definition = define<format::StreamDef>();
  if (definition == nullptr) return 0;
  definition->stream = stream;
  auto id = static_cast<uint16_t>(next_stream_++);
  publish_definition(definition, format::Def::kStream, id);
  return id;
}

uint16_t ThreadLog::find_stream(uint64_t stream) {
  uint64_t hash = stream * 0x9e3779b97f4a7c15;
  const uint16_t* known = known_streams_.find(stream, hash);
  uint16_t id = known != nullptr ? *known : define_stream(stream);
  if (id == 0) {
    lose(kLoss_shape_table_full);
    return 0;
  }
  if (known == nullptr) known_streams_.add(stream, hash, id);
  streams_[(stream >> 4 ^ stream >> 12) % kStreams] = {stream, id};
  return id;
}

uint32_t ThreadLog::kernel_name(const char* name) {
  if (name == nullptr) return 0;
  return find_name(&kernel_names_, format::Def::kKernelName, name,
                   strnlen(name, format::kMaxKernelNameBytes - 1));
}

uint32_t ThreadLog::range_name(const char* name, size_t length) {
  return length == 0 ? 0 : find_name(&range_names_, format::Def::kRangeName, name, length);
}

// Bytes of names of ranges, of all logs.
static uint64_t g_range_name_bytes;

static void give_back_range_name(size_t bytes) {
  __atomic_fetch_sub(&g_range_name_bytes, bytes, __ATOMIC_RELAXED);
}

static bool take_range_name(size_t bytes) {
  const ProcessFile& file = Session::get().file();
  const uint64_t most = uint64_t{file.cap_chunks()} * format::kChunkBytes / ThreadLog::kRangeNamesOfRing;
  const uint64_t taken = __atomic_add_fetch(&g_range_name_bytes, bytes, __ATOMIC_RELAXED);
  if (!file.ring() || taken <= most) return true;
  give_back_range_name(bytes);
  return false;
}

uint32_t ThreadLog::find_name(Names* names, format::Def kind, const char* name, size_t length) {
  uint64_t hash = 0xcbf29ce484222325 ^ length;
  for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, name + at, length - at < sizeof word ? length - at : sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  if (const uint32_t* known = names->known.find(hash, hash)) return *known;
  const size_t bytes =
      sizeof(format::DefHead) + (length / format::kUnitBytes + 1) * format::kUnitBytes;  // a NUL always
  const bool is_range = kind == format::Def::kRangeName;
  const bool is_full = is_range && (names->next > kMostRangeNames || !take_range_name(bytes));
  char* at = is_full ? nullptr : room_for_definition(bytes);
  if (at == nullptr) {
    if (is_range && !is_full) give_back_range_name(bytes);
    lose(kLoss_shape_table_full);
    return 0;
  }
  auto* definition = clear_definition<format::NameDef>(at, bytes);
  memcpy(at + offsetof(format::NameDef, name), name, length);
  const uint32_t id = names->next++;
  publish_definition(definition, kind, id, bytes);
  names->known.add(hash, hash, id);
  return id;
}

void ThreadLog::append_link(uint64_t child, uint64_t parent) {
  auto* record = reserve<format::LinkRecord>();
  if (record == nullptr) return;
  record->head.start = 0;
  record->child = child;
  record->parent = parent;
  publish(record, format::Kind::kLink, 0, 0);
}

void ThreadLog::append_user_tag(uint64_t child, uint64_t tag) {
  auto* record = reserve<format::UserTagRecord>();
  if (record == nullptr) return;
  record->head.start = 0;
  record->child = child;
  record->tag = tag;
  publish(record, format::Kind::kUserTag, 0, 0);
}

void ThreadLog::append_mark(const char* name) {
  const ShapeRef shape =
      define_shape({.func = name, .datatype = nullptr, .algo = nullptr, .proto = nullptr, .root = 0});
  auto* record = reserve<format::MarkRecord>();
  if (record == nullptr) return;
  if (shape.id == format::kShapeUnknown) lose(kLoss_shape_table_full);
  record->head.start = read_ticks();
  record->value = 0;
  record->shape = shape.id;
  record->is_step = 0;
  record->reserved0 = 0;
  publish(record, format::Kind::kMark, 0, 0);
}

void ThreadLog::append_state(uint64_t target, uint16_t state, uint64_t ticks, uint64_t value,
                             uint32_t extra) {
  auto* record = reserve<format::StateRecord>();
  if (record == nullptr) return;
  record->head.start = ticks;
  record->target = target;
  record->value = value;
  publish(record, format::Kind::kState, 0, state, extra);
}

void ThreadLog::append_late_stop(uint64_t target, uint64_t ticks) {
  append_state(target, format::kStateStop, ticks, 0, 0);
  if (Session::get().file().ring()) note_end(target);
}

format::HistogramCell* ThreadLog::histogram_cell(uint64_t key, uint32_t shape_log, uint64_t ticks) {
  if (__builtin_expect(histogram_ == nullptr, 0)) {
    lose(kLoss_histogram_full);
    return nullptr;
  }
  auto* cells = reinterpret_cast<format::HistogramCell*>(histogram_ + sizeof(format::ChunkHeader));
  uint32_t at = static_cast<uint32_t>((key * 0x9e3779b97f4a7c15) >> 32) % format::kHistogramCells;
  for (uint32_t probe = 0; probe < kHistogramProbes; ++probe) {
    format::HistogramCell* cell = &cells[(at + probe) % format::kHistogramCells];
    if (cell->key == key && cell->shape_log == shape_log) return cell;
    if (cell->key == 0) {
      cell->first_ticks = ticks;
      cell->shape_log = shape_log;
      __atomic_store_n(&cell->key, key, __ATOMIC_RELEASE);
      return cell;
    }
  }
  lose(kLoss_histogram_full);
  return nullptr;
}

}  // namespace lockstep::capture
