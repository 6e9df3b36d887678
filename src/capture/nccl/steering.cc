// SPDX-License-Identifier: Apache-2.0
// NCCL has one mask for the process and reads it before it calls us, so a sampled operation needs its bits
// one operation ahead, on every communicator, while others run. The mask is therefore the union of what any
// communicator expects next, and handles say which operations were meant. A slot that expects and never comes
// would keep the mask up for all: after some operations in vain everything that is expected is forgotten, and
// each slot comes back with its next operation.
#include "capture/nccl/steering.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "capture/nccl/abi.h"

namespace lockstep::capture::nccl {

constinit SteeringState g_steering;

namespace {

using std::memory_order_acquire, std::memory_order_relaxed, std::memory_order_release;

// Bits of each mode, in the numbering of the newest interface.
constexpr uint32_t kApiBits = nccl_abi::kTypeGroupApi | nccl_abi::kTypeCollApi | nccl_abi::kTypeP2pApi;
constexpr uint32_t kTaskBits = nccl_abi::kTypeColl | nccl_abi::kTypeP2p | nccl_abi::kTypeCeColl;
constexpr uint32_t kLiteMask = kApiBits | kTaskBits;
constexpr uint32_t kDefaultMask = kLiteMask | nccl_abi::kTypeKernelLaunch | nccl_abi::kTypeGroup |
                                  nccl_abi::kTypeCeSync | nccl_abi::kTypeCeBatch;
constexpr uint32_t kDeepMask = 0xffff;
// What belongs to one operation; ProxyCtrl does not.
constexpr uint32_t kChosenMask = nccl_abi::kTypeKernelCh | nccl_abi::kTypeKernelPhase |
                                 nccl_abi::kTypeProxyOp | nccl_abi::kTypeProxyStep | nccl_abi::kTypeNetPlugin;
constexpr uint32_t kKernelBits = nccl_abi::kTypeKernelCh | nccl_abi::kTypeKernelPhase;
// Off: what operations are counted by. Before v5 the tasks are all there is.
constexpr uint32_t kCountMask = nccl_abi::kTypeCollApi | nccl_abi::kTypeP2p;
constexpr uint32_t kOldCountMask = nccl_abi::kTypeColl | nccl_abi::kTypeP2p;

// NCCL 2.27 to 2.30.
bool fuses_sends(int api) { return api >= 4 && api <= 6; }

// What is to be recorded, word by word: a mixture of old and new is harmless while it changes.
std::atomic<bool> g_off{false}, g_sampling{false}, g_filtering{false};
std::atomic<uint32_t> g_keep{0}, g_of{0}, g_base_mask{0};
std::atomic<uint64_t> g_min_bytes{0};
std::atomic<uint32_t> g_allowed_comms{0};  // that live
// Slots (communicators, pairs) whose next operation is sampled, in the lower half; above it the epoch they
// count in.
std::atomic<uint64_t> g_expected{uint64_t{1} << 32};
std::atomic<uint32_t> g_wasted{0};  // operations that were watched and not chosen since none was expected
std::atomic<uint32_t> g_stored{0};  // what NCCL's words hold, in the numbering of the newest interface

struct NcclMask {
  std::atomic<int*> word;
  std::atomic<int> api;
  uint32_t comms;  // under g_masks_lock
};
constexpr uint32_t kMasks = 16;  // copies of NCCL in the process
NcclMask g_masks[kMasks];
// Held while words are stored, so that none is after its last communicator has gone and NCCL may be unloaded.
// The event path only tries it.
std::atomic<bool> g_masks_taken{false};
bool try_masks() { return !g_masks_taken.exchange(true, memory_order_acquire); }
void give_masks() { g_masks_taken.store(false, memory_order_release); }
void take_masks() {
  while (!try_masks()) sched_yield();
}

// Never taken together with the masks, so their order does not matter.
Recording g_recording;  // under g_recording_lock; for communicators that begin
pthread_mutex_t g_recording_lock = PTHREAD_MUTEX_INITIALIZER;

bool samples(uint32_t number) {
  return selects_number(number, g_keep.load(memory_order_relaxed), g_of.load(memory_order_relaxed));
}

uint32_t wanted_mask() {
  const uint32_t base = g_base_mask.load(memory_order_relaxed);
  if (g_sampling.load(memory_order_relaxed))
    return static_cast<uint32_t>(g_expected.load(memory_order_relaxed)) != 0 ? base | kChosenMask : base;
  if (g_filtering.load(memory_order_relaxed))
    return g_allowed_comms.load(memory_order_relaxed) != 0 ? base | kChosenMask : base;
  return base;
}

int bits_for(uint32_t mask, int api) {
  if (g_off.load(memory_order_relaxed)) mask = api >= 5 ? kCountMask : kOldCountMask;
  return static_cast<int>(mask & nccl_abi::kKnownTypes[api]);
}

// NCCL 2.27 to 2.30 fuse a receive and a send into one piece of GPU work, which writes its times if the mask
// of the one asked for them, while a host thread waits for them if the mask of the other did. If the mask
// changes between the two, that thread can wait for ever. So once there are sends, kernel bits change only
// where nothing is half queued.
enum class Place { kElsewhere, kLaunch };
[[gnu::always_inline]] inline bool may_change_kernels(Place place, const ThreadLog* log, bool turns_on) {
  bool fuses = false;
  for (const NcclMask& mask : g_masks) {
    fuses |=
        mask.word.load(memory_order_relaxed) != nullptr && fuses_sends(mask.api.load(memory_order_relaxed));
  }
  const uintptr_t owner = g_steering.p2p_owner.load(memory_order_relaxed);
  if (!fuses || owner == 0) return true;
  // Samples would turn them on and off all the time; a window does so once.
  const bool seldom = !turns_on || !g_sampling.load(memory_order_relaxed);
  // A thread that launches has no operation queued, but others may.
  if (place == Place::kLaunch)
    return owner == reinterpret_cast<uintptr_t>(log) || (owner == kSeveral && seldom);
  constexpr uint64_t kQuietTicks = uint64_t{4} << 30;  // a second or more, whatever the clock
  return seldom && read_ticks() - g_steering.p2p_ticks.load(memory_order_relaxed) > kQuietTicks;
}

void set_waiting(bool waits) {
  if (waits)
    g_steering.word.fetch_or(kMaskWaits, memory_order_relaxed);
  else if ((steering() & kMaskWaits) != 0)
    g_steering.word.fetch_and(~kMaskWaits, memory_order_relaxed);
}

// Stores what is wanted, as far as it may change here.
void store_masks(Place place, const ThreadLog* log) {
  const uint32_t stored = g_stored.load(memory_order_relaxed);
  const uint32_t wanted = wanted_mask();
  uint32_t next = wanted;
  // The other bits need not wait for the kernel bits.
  if (((stored ^ wanted) & kKernelBits) != 0 && !may_change_kernels(place, log, (wanted & kKernelBits) != 0))
    next = (wanted & ~kKernelBits) | (stored & kKernelBits);
  // What somebody else has stored since (NCCL itself can be asked to, from 2.31 on) stays.
  for (NcclMask& mask : g_masks) {
    // Only a change is stored.
    int* word = mask.word.load(memory_order_relaxed);
    if (word == nullptr || next == stored) continue;
    __atomic_store_n(word, bits_for(next, mask.api.load(memory_order_relaxed)), __ATOMIC_RELAXED);
  }
  g_stored.store(next, memory_order_relaxed);
  set_waiting(next != wanted);
}

// Whoever finds the masks taken leaves the change to the next operation or to the keeper.
void store_masks_if_free(Place place, const ThreadLog* log) {
  if (wanted_mask() == g_stored.load(memory_order_relaxed) || !try_masks()) return;
  store_masks(place, log);
  give_masks();
}

// All that is expected is forgotten; each slot comes back with its next operation.
void new_epoch() {
  uint64_t seen = g_expected.load(memory_order_relaxed);
  while (!g_expected.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32, memory_order_relaxed)) {
  }
  g_wasted.store(0, memory_order_relaxed);
}

void expect(uint32_t epoch, int change) {
  // Epoch and count are one word, so that what was counted in an old epoch never changes the new count.
  uint64_t seen = g_expected.load(memory_order_relaxed);
  while (seen >> 32 == epoch &&
         !g_expected.compare_exchange_weak(seen, seen + static_cast<uint64_t>(int64_t{change}),
                                           memory_order_relaxed)) {
  }
  if (static_cast<uint32_t>(g_expected.load(memory_order_relaxed)) == 0)
    g_wasted.store(0, memory_order_relaxed);
}

// A communicator that stops just before its sampled operation would keep the mask up for all others.
void count_waste(bool chosen) {
  if (chosen || static_cast<uint32_t>(g_expected.load(memory_order_relaxed)) == 0) return;
  const uint32_t wasted = g_wasted.load(memory_order_relaxed) + 1;
  g_wasted.store(wasted, memory_order_relaxed);
  const uint32_t most = 64 * g_of.load(memory_order_relaxed);
  if (wasted > (most < 1024 ? 1024 : most)) new_epoch();
}

struct Choice {
  bool chosen, expected;
};
// Moves a slot on from operation `number`.
template <class Load, class Store>
Choice advance(const OperationSeen& operation, Load load, Store store) {
  Choice choice{};
  const bool allowed = operation.comm != nullptr && operation.comm->allowed.load(memory_order_relaxed);
  const bool large = operation.bytes >= g_min_bytes.load(memory_order_relaxed);
  if (!g_sampling.load(memory_order_relaxed)) {
    choice.chosen = allowed && large;
    choice.expected = true;
    return choice;
  }
  // A slot that was counted in an earlier epoch expects nothing any more.
  const auto epoch = static_cast<uint32_t>(g_expected.load(memory_order_relaxed) >> 32);
  choice.expected = load() == epoch;
  choice.chosen = allowed && large && samples(operation.number);
  const bool next = allowed && samples(operation.number + 1);
  if (next != choice.expected) {
    store(next ? epoch : 0);
    expect(epoch, next ? 1 : -1);
  }
  count_waste(choice.chosen);
  return choice;
}

bool finish(ThreadLog* log, const OperationSeen& operation, bool chosen, bool watched) {
  store_masks_if_free(operation.launching ? Place::kLaunch : Place::kElsewhere, log);
  if (chosen && !watched && g_sampling.load(memory_order_relaxed) && log != nullptr)
    // NCCL had read the mask before it asked for this operation: its deep events are missing.
    log->lose(kLoss_sample_missed);
  return chosen;
}

// Memory that is never given back: contexts outlive their communicators.
void* reserve_zeros(size_t bytes) {
  static std::atomic<char*> block{nullptr};
  static size_t left = 0;  // under g_recording_lock, as `block`
  constexpr size_t kBlock = size_t{1} << 20;
  bytes = (bytes + 63) & ~size_t{63};
  if (bytes > left) {
    const size_t size = bytes > kBlock / 4 ? bytes : kBlock;
    void* memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    // A mapping of its own; what is left of the block serves the next ones.
    if (size == bytes) return memory;
    block = static_cast<char*>(memory);
    left = size;
  }
  char* out = block;
  block = out + bytes;
  left -= bytes;
  return out;
}

struct RecordingLock {
  RecordingLock() { pthread_mutex_lock(&g_recording_lock); }
  ~RecordingLock() { pthread_mutex_unlock(&g_recording_lock); }
  RecordingLock(const RecordingLock&) = delete;
  RecordingLock& operator=(const RecordingLock&) = delete;
};

// Without what sampling and filters add and take away.
uint32_t base_mask(const Recording& recording) {
  switch (recording.mode) {
    case format::Mode::kOff:
      return kCountMask;
    case format::Mode::kLite:
      return kLiteMask;
    case format::Mode::kDeep:
      return recording.selects() ? kDefaultMask : kDeepMask;
    default:
      return kDefaultMask;
  }
}

uint32_t word_of(const Recording& recording) {
  if (recording.mode == format::Mode::kOff) return kNothing;
  if (recording.mode == format::Mode::kLite) return kNoGroups;
  return recording.selects() ? kSelects : 0;
}

// With `make`, g_recording_lock is held: two threads would make a page each.
CommCount* place_of(uint32_t comm, bool make) {
  if (comm >= kCommPages * kCommsPerPage) return nullptr;
  std::atomic<CommCount*>& page = g_steering.pages[comm / kCommsPerPage];
  CommCount* counts = page.load(memory_order_acquire);
  if (counts == nullptr && make) {
    counts = static_cast<CommCount*>(reserve_zeros(kCommsPerPage * sizeof(CommCount)));
    page.store(counts, memory_order_release);
  }
  return counts == nullptr ? nullptr : counts + comm % kCommsPerPage;
}

uint32_t set_allowed(CommCount* comm) {
  // One that has ended must not keep the mask up.
  const bool lives = comm->mask.load(memory_order_relaxed) != 0;
  const bool allowed = g_recording.selects_comm(comm->comm_id.load(memory_order_relaxed));
  comm->allowed.store(allowed, memory_order_relaxed);
  return lives && allowed;
}

// Which communicators are wanted; g_recording_lock is held. A walk over all that were ever made: modes change
// seldom, and events of v1 to v3 identify a communicator once.
void allow_comms() {
  uint32_t allowed = 0;
  for (std::atomic<CommCount*>& page : g_steering.pages) {
    CommCount* counts = page.load(memory_order_acquire);
    for (uint32_t i = 0; counts != nullptr && i < kCommsPerPage; ++i) allowed += set_allowed(counts + i);
  }
  g_allowed_comms.store(allowed, memory_order_relaxed);
}

void report_modes() {
  Session& session = Session::get();
  if (!session.file().usable()) return;
  static uint64_t reported = ~uint64_t{0};  // the keeper's, and before there is one whoever opens
  // A sampled operation changes the mask all the time.
  const bool sampling = g_sampling.load(memory_order_relaxed);
  const uint32_t mask =
      sampling ? g_base_mask.load(memory_order_relaxed) | kChosenMask : g_stored.load(memory_order_relaxed);
  const bool waits = !sampling && (steering() & kMaskWaits) != 0;
  const uint64_t now = uint64_t{mask} << 1 | (waits ? 1 : 0);
  if (now == reported) return;
  reported = now;
  session.set_event_mask(mask, waits);
}

}  // namespace

void record_new_p2p_thread(uintptr_t log) {
  uintptr_t none = 0;
  // Two threads that send are enough to know that others may have a receive half queued at any time.
  if (!g_steering.p2p_owner.compare_exchange_strong(none, log, memory_order_relaxed))
    g_steering.p2p_owner.store(kSeveral, memory_order_relaxed);
}

bool is_watched() { return (g_stored.load(memory_order_relaxed) & kChosenMask) == kChosenMask; }

bool choose_collective(ThreadLog* log, const OperationSeen& operation) {
  // A thread that only queues differs from one that launches: what the mask holds now is what NCCL has just
  // read.
  const bool watched = is_watched();
  CommCount* comm = operation.comm;
  const Choice choice = advance(
      operation, [&] { return comm == nullptr ? 0 : comm->expected.load(memory_order_relaxed); },
      [&](uint32_t epoch) {
        if (comm != nullptr) comm->expected.store(epoch, memory_order_relaxed);
      });
  return finish(log, operation, choice.chosen, operation.launching ? choice.expected : watched);
}

bool choose_pair(ThreadLog* log, PairCount* pair, const OperationSeen& operation, bool was_watched) {
  if (pair == nullptr && g_sampling.load(memory_order_relaxed)) return false;
  const Choice choice = advance(
      operation, [&] { return pair == nullptr ? 0 : __atomic_load_n(&pair->expected, __ATOMIC_RELAXED); },
      [&](uint32_t epoch) {
        if (pair != nullptr) __atomic_store_n(&pair->expected, epoch, __ATOMIC_RELAXED);
      });
  return finish(log, operation, choice.chosen, was_watched);
}

bool may_switch_kernels(bool launching, bool turns_on) {
  return may_change_kernels(launching ? Place::kLaunch : Place::kElsewhere, ThreadLog::current(), turns_on);
}

void apply_pending_at_launch(const ThreadLog* log) { store_masks_if_free(Place::kLaunch, log); }

void record(const Recording& recording) {
  {
    RecordingLock locked;
    g_recording = recording;
    allow_comms();
  }
  g_off.store(recording.mode == format::Mode::kOff, memory_order_relaxed);
  g_keep.store(recording.keep, memory_order_relaxed);
  g_of.store(recording.of, memory_order_relaxed);
  g_min_bytes.store(recording.min_bytes, memory_order_relaxed);
  g_filtering.store(recording.mode == format::Mode::kDeep && recording.selects(), memory_order_relaxed);
  g_sampling.store(recording.mode == format::Mode::kSample, memory_order_relaxed);
  g_base_mask.store(base_mask(recording), memory_order_relaxed);
  new_epoch();
  g_steering.word.store(word_of(recording), memory_order_relaxed);
  apply_pending();
}

void apply_pending() {
  // An operation that finds the masks taken misses its sample.
  const bool waits = (steering() & kMaskWaits) != 0;
  if (waits || wanted_mask() != g_stored.load(memory_order_relaxed)) {
    take_masks();
    store_masks(Place::kElsewhere, nullptr);
    give_masks();
  }
  report_modes();
}

void begin_counting(uint32_t comm, const CommInfo& info, int* mask) {
  const int api = static_cast<int>(info.api_version);
  take_masks();
  uint32_t place = kMasks;
  for (uint32_t i = kMasks; i-- > 0;) {
    if (g_masks[i].word.load(memory_order_relaxed) == nullptr && place == kMasks) place = i;
  }
  // Communicators of one NCCL share its word, and so its place.
  for (uint32_t i = 0; i < kMasks; ++i) {
    if (g_masks[i].word.load(memory_order_relaxed) == mask) place = i;
  }
  if (place < kMasks) {
    g_masks[place].api.store(api, memory_order_relaxed);
    g_masks[place].word.store(mask, memory_order_relaxed);
    ++g_masks[place].comms;
  }
  // Also without a place: such a copy of NCCL keeps the mask that it begins with.
  __atomic_store_n(mask, bits_for(g_stored.load(memory_order_relaxed), api), __ATOMIC_RELAXED);
  give_masks();

  RecordingLock locked;
  CommCount* count = place_of(comm, true);
  if (count == nullptr) return;
  count->comm_id.store(info.comm_id, memory_order_relaxed);
  count->mask.store(static_cast<uint8_t>(place < kMasks ? place + 1 : 0), memory_order_relaxed);
  if (info.ranks > 0) {
    // Before the pairs: who sees those sees how many there are.
    count->ranks = static_cast<uint32_t>(info.ranks);
    count->pairs.store(
        static_cast<PairCount*>(reserve_zeros(2 * sizeof(PairCount) * static_cast<size_t>(info.ranks))),
        memory_order_release);
  }
  if (set_allowed(count) != 0) g_allowed_comms.fetch_add(1, memory_order_relaxed);
}

void identify_counted(uint32_t comm, uint64_t comm_id) {
  RecordingLock locked;
  CommCount* count = place_of(comm, false);
  if (count == nullptr || count->comm_id.exchange(comm_id, memory_order_relaxed) == comm_id) return;
  allow_comms();
}

void end_counting(uint32_t comm) {
  uint8_t place = 0;
  {
    RecordingLock locked;
    CommCount* count = place_of(comm, false);
    if (count == nullptr) return;
    place = count->mask.exchange(0, memory_order_relaxed);
    if (place != 0 && count->allowed.load(memory_order_relaxed))
      g_allowed_comms.fetch_sub(1, memory_order_relaxed);
  }
  if (place == 0) return;
  take_masks();
  NcclMask& mask = g_masks[place - 1];
  if (--mask.comms == 0) mask.word.store(nullptr, memory_order_relaxed);
  give_masks();
}

int mask_for(int api) { return bits_for(g_stored.load(memory_order_relaxed), api); }

}  // namespace lockstep::capture::nccl
