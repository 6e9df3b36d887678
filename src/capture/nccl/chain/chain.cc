// SPDX-License-Identifier: Apache-2.0
// A second plugin is loaded as NCCL would load it, and called with what it would have been called with. Each
// of the two writes its own word for the mask, and NCCL's holds both together; which events each wanted is
// decided per event. Nothing of it is ever freed, since handles and contexts come back after their end.
#include "capture/nccl/chain/chain.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

#include "capture/core/locked.h"
#include "capture/nccl/chain/shim.h"
#include "capture/nccl/steering.h"
#include "format/records.h"

extern "C" {
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v1::Plugin lockstep_profiler_v1;
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v2::Plugin lockstep_profiler_v2;
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v3::Plugin lockstep_profiler_v3;
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v4::Plugin lockstep_profiler_v4;
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v5::Plugin lockstep_profiler_v5;
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v6::Plugin lockstep_profiler_v6;
extern __attribute__((visibility("hidden"))) lockstep::nccl_abi::v7::Plugin lockstep_profiler_v7;
}

namespace lockstep::capture::nccl {

constinit ChainState g_chain;

namespace {

using std::memory_order_acquire, std::memory_order_relaxed, std::memory_order_release;

// What a message lists may be newer than what is spoken here.
constexpr int kNewestApi = 7, kNewestProbed = 12;
constexpr uint32_t kCommsPerChainPage = 1024, kChainPages = 1024;
// Communicators of ours count from the one end, those that only the other plugin knows from the other.
constexpr uint32_t kMostChained = kCommsPerChainPage * kChainPages;

// Read once, at load: from then on NCCL may have seen the tables that chaining changes.
char g_wanted[512];
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
std::atomic<ChainedComm*> g_pages[kChainPages];
std::atomic<uint32_t> g_others{0};  // communicators without a context of ours
std::atomic<uint64_t> g_next_chain_only{1};
std::atomic<uint64_t> g_missed_reported{0};

struct Library {
  void* handle = nullptr;
  bool opened = false;
  char problem[400] = {};
};
Library g_library;  // under g_lock, as these
ChainedVersion g_versions[kNewestApi + 1];
bool g_asked[kNewestApi + 1];

void log_message(nccl_abi::Logger logger, int level, const char* text) {
  if (logger != nullptr) logger(level, nccl_abi::kLogSubsystemProfile, "lockstep", 0, "%s", text);
}

void* symbol_of(int version) {
  // Not from the whole program, where our own library has the same names.
  char name[24];
  snprintf(name, sizeof name, "ncclProfiler_v%d", version);
  return dlsym(g_library.handle, name);
}
// The name is the first member of every version.
const char* name_of(const void* plugin) {
  const char* name = *static_cast<const char* const*>(plugin);
  return name != nullptr ? name : "(unnamed)";
}

// As NCCL finds a plugin: by the name as it is, then as the middle of a library's name.
void open_library() {
  g_library.opened = true;
  g_library.handle = dlopen(g_wanted, RTLD_NOW | RTLD_LOCAL);
  if (g_library.handle == nullptr) {
    const char* why = dlerror();
    snprintf(g_library.problem, sizeof g_library.problem, "cannot be loaded: %s", why != nullptr ? why : "");
    const size_t length = strlen(g_wanted);
    const bool is_file_name =
        strncmp(g_wanted, "lib", 3) == 0 && length > 3 && strcmp(g_wanted + length - 3, ".so") == 0;
    for (const char* library : {"libnccl-profiler", "librccl-profiler"}) {
      if (strchr(g_wanted, '/') != nullptr || is_file_name || g_library.handle != nullptr) break;
      char longer[sizeof g_wanted + 32];
      snprintf(longer, sizeof longer, "%s-%s.so", library, g_wanted);
      g_library.handle = dlopen(longer, RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (g_library.handle == nullptr) return;
  g_library.problem[0] = 0;
  for (int version = 1; version <= kNewestApi; ++version) {
    const void* plugin = symbol_of(version);
    // Chained to itself it would call itself for ever. By the name that it gives itself: a path or a link may
    // hide what it is.
    if (plugin == nullptr || strcmp(name_of(plugin), make_plugin<1>().name) != 0) continue;
    snprintf(g_library.problem, sizeof g_library.problem, "is Lockstep itself");
    dlclose(g_library.handle);
    g_library.handle = nullptr;
    return;
  }
}

void list_versions(char* text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int version = 1; version <= kNewestProbed && used + 8 < size; ++version) {
    if (symbol_of(version) == nullptr) continue;
    used += static_cast<size_t>(snprintf(text + used, size - used, "%sv%d", used == 0 ? "" : ", ", version));
  }
}

// The newest that is no newer than NCCL's; else the next, where nothing is missing that it needs: from v5 on
// the events hang together in one way.
int pick_version(int api) {
  for (int version = api; version >= 1; --version)
    if (symbol_of(version) != nullptr) return version;
  for (int version = api + 1; api >= 5 && version <= kNewestApi; ++version)
    if (symbol_of(version) != nullptr) return version;
  return 0;
}

ChainedVersion choose_version(int api, nccl_abi::Logger logger) {
  if (!g_library.opened) open_library();
  ChainedVersion chosen{};
  char text[800], versions[64];
  if (g_library.handle != nullptr) {
    chosen.version = pick_version(api);
    list_versions(versions, sizeof versions);
    if (chosen.version != 0) {
      chosen.plugin = symbol_of(chosen.version);
      // All versions have their init at the same place.
      if (static_cast<const nccl_abi::v5::Plugin*>(chosen.plugin)->init == nullptr) {
        snprintf(g_library.problem, sizeof g_library.problem, "has no init in its ncclProfiler_v%d",
                 chosen.version);
        chosen = {};
      }
    } else if (versions[0] == 0) {
      snprintf(g_library.problem, sizeof g_library.problem,
               "is not a profiler plugin: it has no ncclProfiler_v1 to v7");
    } else {
      snprintf(g_library.problem, sizeof g_library.problem,
               "has versions %s of the interface, this NCCL speaks v%d", versions, api);
    }
  }
  char note[192];
  if (chosen.plugin != nullptr) {
    Dl_info where{};
    const char* path =
        dladdr(chosen.plugin, &where) != 0 && where.dli_fname != nullptr ? where.dli_fname : g_wanted;
    snprintf(text, sizeof text, "lockstep: chained the profiler plugin %s (v%d) of %s",
             name_of(chosen.plugin), chosen.version, path);
    snprintf(note, sizeof note, "%s v%d, %s", name_of(chosen.plugin), chosen.version, path);
  } else {
    snprintf(text, sizeof text, "lockstep: no profiler plugin is chained: %s %s", g_wanted,
             g_library.problem);
    snprintf(note, sizeof note, "none: %s %s", g_wanted, g_library.problem);
  }
  log_message(logger, chosen.plugin != nullptr ? nccl_abi::kLogInfo : nccl_abi::kLogWarn, text);
  Session::get().add_note(format::kNoteChained, note);
  return chosen;
}

ChainedComm* comm_at(uint32_t index, bool make) {
  if (index >= kMostChained) return nullptr;
  std::atomic<ChainedComm*>& page = g_pages[index / kCommsPerChainPage];
  ChainedComm* comms = page.load(memory_order_acquire);
  if (comms == nullptr && make) {
    Locked locked(&g_lock);
    // Once more: another thread may have made the page.
    comms = page.load(memory_order_acquire);
    if (comms == nullptr) {
      void* memory = mmap(nullptr, kCommsPerChainPage * sizeof(ChainedComm), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) return nullptr;
      comms = static_cast<ChainedComm*>(memory);
      page.store(comms, memory_order_release);
    }
  }
  return comms == nullptr ? nullptr : comms + index % kCommsPerChainPage;
}

// Random, and with the top bit set, as the tag of our own contexts, so that neither looks like an address.
uint32_t chain_tag() {
  uint32_t tag = g_chain.tag.load(memory_order_relaxed);
  if (tag != 0) return tag;
  // A time and an address of the stack differ from process to process.
  const auto now = static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
  tag = static_cast<uint32_t>(((now ^ reinterpret_cast<uintptr_t>(&now)) * 0x9e3779b97f4a7c15) >> 32) |
        0x80000000u;
  if (tag == Session::get().process_tag()) tag ^= 1;
  uint32_t none = 0;
  return g_chain.tag.compare_exchange_strong(none, tag, memory_order_relaxed) ? tag : none;
}

bool take(ChainedMask* mask) { return !mask->taken.exchange(true, memory_order_acquire); }
void wait_and_take(ChainedMask* mask) {
  while (!take(mask)) sched_yield();
}
void give(ChainedMask* mask) { mask->taken.store(false, memory_order_release); }

// Who held them is not in the child.
void after_fork_in_child() {
  g_lock = PTHREAD_MUTEX_INITIALIZER;
  for (ChainedMask& mask : g_chain.masks) give(&mask);
}

__attribute__((constructor)) void at_load() {
  const char* asked = getenv("LOCKSTEP_CHAIN");
  if (asked == nullptr || strcasecmp(asked, "none") == 0) return;
  snprintf(g_wanted, sizeof g_wanted, "%s", asked);
  if (g_wanted[0] == 0) return;
  // From here on NCCL finds the callbacks that chain. It cannot have looked yet: the loader runs this first.
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  chain<1>(&lockstep_profiler_v1);
  chain<2>(&lockstep_profiler_v2);
  chain<3>(&lockstep_profiler_v3);
  chain<4>(&lockstep_profiler_v4);
  chain<5>(&lockstep_profiler_v5);
  chain<6>(&lockstep_profiler_v6);
  chain<7>(&lockstep_profiler_v7);
}

}  // namespace

bool is_chain_wanted() { return g_wanted[0] != 0; }

ChainedVersion chained_version(int api, nccl_abi::Logger logger) {
  Locked locked(&g_lock);
  if (!g_asked[api]) {
    g_asked[api] = true;
    g_versions[api] = choose_version(api, logger);
  }
  return g_versions[api];
}

void log_left_out(nccl_abi::Logger logger, const char* name, int error) {
  char text[256];
  snprintf(text, sizeof text,
           "lockstep: the chained profiler plugin %s failed to start for a communicator (error %d) and is "
           "left out of it",
           name, error);
  log_message(logger, nccl_abi::kLogWarn, text);
}

// The place of this copy of NCCL, else one that no copy has or has any more; g_lock is held, without which no
// communicator is added.
static ChainedMask* place_of(const int* word) {
  // A copy of NCCL that was unloaded leaves its place; its word's address may come back as another copy's.
  ChainedMask* free = nullptr;
  for (ChainedMask& mask : g_chain.masks) {
    wait_and_take(&mask);
    const bool is_it = mask.word == word, is_free = mask.comms == 0;
    give(&mask);
    if (is_it) return &mask;
    if (is_free && free == nullptr) free = &mask;
  }
  return free;
}

ChainedMask* chained_mask(int* word) {
  Locked locked(&g_lock);
  ChainedMask* mask = place_of(word);
  if (mask == nullptr) return nullptr;
  wait_and_take(mask);
  if (mask->word != word) {
    mask->word = word;
    __atomic_store_n(&mask->own, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mask->other, 0, __ATOMIC_RELAXED);
  }
  // NCCL was loaded anew.
  if (mask->comms++ == 0) mask->merged.store(0, memory_order_relaxed);
  give(mask);
  return mask;
}

void release_mask(ChainedMask* mask) {
  wait_and_take(mask);
  --mask->comms;
  give(mask);
}

// `mask` is taken, and given back.
static void follow_taken(ChainedMask* mask, bool launching, bool always) {
  constexpr int kKernelBits = static_cast<int>(nccl_abi::kTypeKernelCh | nccl_abi::kTypeKernelPhase);
  // With the only communicator still in its init, nothing is queued.
  const bool is_first = always && mask->comms == 1;
  // Until nothing has changed meanwhile: who changed a word and found the mask taken has left it to us.
  for (;;) {
    const int wanted = __atomic_load_n(&mask->own, __ATOMIC_SEQ_CST) | mask->wanted_there(__ATOMIC_SEQ_CST);
    const int merged = mask->merged.load(memory_order_relaxed);
    if (wanted == merged && !always) break;
    always = false;
    int next = wanted;
    // The change may have been made anywhere: ours, too, by a thread that comes by later than the one that
    // made it.
    if (((wanted ^ merged) & kKernelBits) != 0 && !is_first &&
        !may_switch_kernels(launching, (wanted & kKernelBits) != 0))
      next = (wanted & ~kKernelBits) | (merged & kKernelBits);
    // Without a communicator NCCL may be unloaded, and its word with it.
    if (mask->comms != 0) __atomic_store_n(mask->word, next, __ATOMIC_SEQ_CST);
    mask->merged.store(next, memory_order_relaxed);
    if (next != wanted) break;
  }
  give(mask);
}

void follow_slowly(ChainedMask* mask, bool launching) {
  // An event never waits for another one's look at the mask.
  if (take(mask)) follow_taken(mask, launching, false);  // else the next event does it, or the keeper
}

void follow_now(ChainedMask* mask) {
  wait_and_take(mask);
  follow_taken(mask, false, true);
}

void apply_pending_chain() {
  apply_pending();
  for (ChainedMask& mask : g_chain.masks) follow(&mask, false);
  const uint64_t missed = g_chain.missed.load(memory_order_relaxed);
  // Each time that the number has doubled: the file keeps every note.
  if (missed >= 2 * g_missed_reported.load(memory_order_relaxed) + 1) report_missed();
}

ChainedComm* new_chained_comm(void** context) {
  const auto number = reinterpret_cast<uintptr_t>(*context);
  const Session& session = Session::get();
  const uint32_t ours = static_cast<uint32_t>(number) - 1;
  if (session.running() && static_cast<uint32_t>(number >> 32) == session.process_tag() &&
      ours < session.comms())
    return ours < kMostChained / 2 ? comm_at(ours, true) : nullptr;
  const uint32_t others = g_others.fetch_add(1, memory_order_relaxed);
  if (others >= kMostChained / 2) return nullptr;
  // Numbers of our own grow from the other end, so the two never meet.
  const uint32_t index = kMostChained - 1 - others;
  ChainedComm* comm = comm_at(index, true);
  if (comm != nullptr) *context = reinterpret_cast<void*>(format::make_context(chain_tag(), index));
  return comm;
}

bool is_of_this_process(uint64_t context) {
  const auto tag = static_cast<uint32_t>(context >> 32);
  return tag != 0 && (tag == Session::get().process_tag() || tag == g_chain.tag.load(memory_order_relaxed));
}

ChainedComm* chained_comm(uint64_t context) {
  if (!is_of_this_process(context)) return nullptr;
  ChainedComm* comm = comm_at(static_cast<uint32_t>(context) - 1, false);
  return comm != nullptr && comm->valid.load(memory_order_acquire) ? comm : nullptr;
}

uint64_t new_chain_only(HandlePairs::Room room) {
  // A block of numbers for each thread: of one counter for all, each event would write the cache line.
  constexpr uint64_t kBlock = 256;
  static thread_local uint64_t next = 0;
  if (next % kBlock == 0) next = g_next_chain_only.fetch_add(1, memory_order_relaxed) * kBlock;
  return kChainOnly | next++ << 2 | room;
}

HandlePairs::Room room_of(uint64_t handle) {
  if (is_chain_only(handle)) return room_of_chain_only(handle);
  switch (static_cast<format::Kind>(format::handle_kind(handle))) {
    case format::Kind::kProxyStep:
    case format::Kind::kProxyCtrl:
    case format::Kind::kKernelCh:
    case format::Kind::kNetPlugin:
    case format::Kind::kKernelLaunch:
    case format::Kind::kCeSync:
    case format::Kind::kCeBatch:
    case format::Kind::kKernelPhase:
      return HandlePairs::kLeaves;
    default:
      return HandlePairs::kTasks;
  }
}

HandlePairs::Found find_pair(uint64_t handle) {
  const HandlePairs::Room room = room_of(handle);
  const HandlePairs::Found found = g_chain.pairs.find(room, handle);
  // A call may have been captured; the handle does not say.
  if (found.known || room != HandlePairs::kTasks) return found;
  return g_chain.pairs.find(HandlePairs::kCaptured, handle);
}

void report_missed() {
  const uint64_t missed = g_chain.missed.load(memory_order_relaxed);
  if (g_missed_reported.exchange(missed, memory_order_relaxed) == missed) return;
  char text[24];
  snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(missed));
  Session::get().add_note(format::kNoteChainMissed, text);
}

uint32_t enabling_bits(int api, uint32_t type_index) {
  using namespace nccl_abi;
  constexpr uint32_t kNetwork = kTypeProxyOp | kTypeProxyStep | kTypeNetPlugin;
  constexpr uint32_t kWork = kNetwork | kTypeKernelCh | kTypeKernelPhase;
  constexpr uint32_t kCopies = kTypeCeColl | kTypeCeSync | kTypeCeBatch;
  constexpr uint32_t kCollApiBits = kTypeCollApi | kTypeColl | kWork | kCopies;
  constexpr uint32_t kP2pApiBits = kTypeP2pApi | kTypeP2p | kWork;
  constexpr uint32_t kGroupBits = kTypeGroup | kTypeColl | kTypeP2p | kWork;
  // In the order of NCCL's type bits.
  constexpr uint32_t kBits[16] = {kGroupBits,
                                  kTypeColl | kWork,
                                  kTypeP2p | kWork,
                                  kNetwork,
                                  kTypeProxyStep | kTypeNetPlugin,
                                  kTypeProxyCtrl,
                                  kTypeKernelCh,
                                  kTypeNetPlugin,
                                  kTypeGroupApi | kCollApiBits | kP2pApiBits | kTypeKernelLaunch | kGroupBits,
                                  kCollApiBits,
                                  kP2pApiBits,
                                  kTypeKernelLaunch,
                                  kCopies,
                                  kTypeCeSync,
                                  kTypeCeBatch,
                                  kTypeKernelPhase};
  type_index &= 15;
  const bool is_diagnosed = api == 6 && ((kTypeProxyOp | kTypeProxyStep) >> type_index & 1) != 0;
  return (kBits[type_index] & kKnownTypes[api]) |
         (is_diagnosed ? static_cast<uint32_t>(rccl_v6::kTypeProxyDiag) : 0);
}

}  // namespace lockstep::capture::nccl
