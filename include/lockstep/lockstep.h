// SPDX-License-Identifier: Apache-2.0
// Lockstep's C API: with it a communication kernel of your own says what it does, so that it appears in
// traces and analyses beside NCCL's operations. C99 and C++11; header-only: nothing to link, nothing to
// initialise.
//
//   lockstep_group tp = lockstep_declare_group("tensor:3", ranks, 4, my_index);
//   lockstep_op op = lockstep_begin(tp, "allreduce", n, n, "Half", stream);
//   my_all_reduce<<<..., stream>>>(...);
//   lockstep_end(op, NULL);
//
// Where the run time is: the first call in each translation unit looks for a loaded liblockstep.so, then for
// the file that the environment variable LOCKSTEP_LIBRARY names (`lockstep trace` sets it). If there is none,
// every call is one branch on a pointer, for ever. With it, a call appends a record to the calling thread's
// log: no lock, no allocation, no system call, except in the first call of a thread and the first use of a
// name.
//
// Threads: any thread may call anything, also at once. Errors: no call fails or throws; what cannot be
// recorded is counted in the process file, and `lockstep info` shows it.
//
// Texts end in NUL, should be UTF-8, and are copied during the call. A process keeps about 2,000 distinct
// ones, each for ever, so do not format numbers into them. Kept are 111 bytes of a group's name and of its
// description, 39 of a collective or a mark, 23 of a type and of an algorithm; the rest is cut.
//
// Clocks: begin, end, steps and marks are stamped with the host's clock inside the call. GPU times come from
// the caller, who says on which clock they are.
//
// Processes: the first call opens a file in the run directory, which is closed at exit(). A child of fork()
// records nothing if its parent had made a call before; start processes first, or exec.
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifdef __cplusplus
#include <string>
#include <tuple>
extern "C" {
#endif
// NOLINTBEGIN(modernize-use-nullptr,bugprone-sizeof-expression): C99, too

// Handles: numbers without a pointer in them, valid for the life of the process, never issued twice and never
// freed. A handle that was not issued here is counted and otherwise harmless.
typedef uint64_t lockstep_group;  // 0: none
typedef uint64_t lockstep_op;     // 0: none; an operation that began on one thread may end on another

// Structs begin with their size and only ever grow at their end: what an older caller does not pass counts as
// not said, and what a newer caller passes beyond our struct is not read. The caller owns them; nothing keeps
// a pointer into them after the call.

// A group of ranks. Declaring one again gives the same handle and is cheap for progressions. The same name,
// description and ranks on all members make it one group in the tools. PyTorch's `Comms Id` is made of the
// name, the ranks and the number of an operation: pass the name that PyTorch has. Without a description,
// "<description>:<name>" counts as both if <name> is a number or a SHA-1.
//
// Members: 1 to 2^24. A list of ranks that are evenly spaced is the same group as `start` and `stride` that
// say so. One process may be several members (its threads, each with a `rank` of its own); each has its own
// numbers of operations.
typedef struct lockstep_group_info {
  // sizeof(lockstep_group_info). The member `description` came later: a size without it is accepted.
  uint32_t size;
  // This process' index in the group, from 0; -1: found from its global rank (RANK, SLURM_PROCID, ...).
  int32_t rank;
  // The same text on all members. NULL counts as empty.
  const char* name;
  // `count` global ranks in group order; NULL: start, start + stride, ...
  const int32_t* ranks;
  // Members. Outside 1 to 2^24 the group is refused, and the refusal counted.
  int32_t count;
  // With `ranks` NULL: the global rank of member 0.
  int32_t start;
  // With `ranks` NULL: the distance of two members' global ranks; -1: the members are no progression and not
  // known here.
  int32_t stride;
  // 0.
  int32_t reserved;
  // What the group is for, as PyTorch's group description; empty: none; NULL: none, or in the name.
  const char* description;
} lockstep_group_info;
// Nothing said but the size: start from it, so that members of later versions are unsaid, too.
#define LOCKSTEP_GROUP_INFO_INIT \
  { sizeof(lockstep_group_info), -1, NULL, NULL, 0, -1, -1, 0, NULL }

// What else is said of an operation; several may be ored. Without P2P and COLLECTIVE, one with a peer is P2P.
enum lockstep_op_flags {
  LOCKSTEP_OP_SEQ = 1,         // `seq` is the number, also where it is 0
  LOCKSTEP_OP_P2P = 2,         // PyTorch's isP2P: it has a number among sends and receives
  LOCKSTEP_OP_COLLECTIVE = 4,  // ... among collectives
  LOCKSTEP_OP_ASYNC = 8,       // the caller does not wait for it
  LOCKSTEP_OP_SYNC = 16        // the caller waits for it
};

// One operation, as this rank does it. Start from LOCKSTEP_OP_INFO_INIT and set what is known: what is not
// said stays unknown in the tools and is not made up. Counts are elements of `dtype` on this rank, whole
// buffers, not one peer's part. Pointers are read during the call only; `stream` is a value that is never
// followed.
typedef struct lockstep_op_info {
  // sizeof(lockstep_op_info). The splits came later: a size without them is accepted, a smaller one is
  // counted and the operation left out.
  uint32_t size;
  // Rooted collectives: the root's index in the group; -1 none.
  int32_t root;
  // Send and recv: the other side's index in the group; -1 none.
  int32_t peer;
  // enum lockstep_op_flags.
  uint32_t flags;
  // From lockstep_declare_group(); 0: recorded without a group, which no tool can match with other ranks.
  lockstep_group group;
  // "allreduce", "all_gather", "send", ...: PyTorch's or NCCL's word where there is one.
  const char* collective;
  // "one-shot", "ring", ...; NULL unknown.
  const char* algorithm;
  // "Float" (c10) or "ncclFloat32". An element of a type that nobody knows counts as one byte.
  const char* dtype;
  // Elements that this rank gives and gets.
  uint64_t in_count;
  uint64_t out_count;
  // CUDA or HIP stream that the kernel is launched on; NULL none.
  const void* stream;
  // n-th on this group, from 1, collectives and send/recv apart; 0: counted here. All ranks give one
  // operation the same number, as PyTorch does.
  int64_t seq;
  // Elements, or rows, for each member, as all_to_all_single takes them; NULL: even. Of more than 30 numbers,
  // the first 29 and the last are kept, as PyTorch prints them.
  const int64_t* in_split;
  const int64_t* out_split;
  // Numbers in each list.
  uint32_t in_splits;
  uint32_t out_splits;
} lockstep_op_info;
#define LOCKSTEP_OP_INFO_INIT \
  { sizeof(lockstep_op_info), -1, -1, 0, 0, NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, 0, 0 }

// The clock of GPU times that a caller gives. The first two place an operation beside all others. Times on
// the GPU's own clocks are kept in the file, but nothing ties them to the host's clock: the tools count them
// as a loss.
enum lockstep_clock {
  LOCKSTEP_CLOCK_MONOTONIC = 1,  // CLOCK_MONOTONIC of this host, ns
  LOCKSTEP_CLOCK_REALTIME = 2,   // CLOCK_REALTIME of this host, ns
  LOCKSTEP_CLOCK_GPU_NS = 3,     // the GPU's own: %globaltimer of NVIDIA, ns
  LOCKSTEP_CLOCK_GPU_TICKS = 4   // the GPU's own: wall_clock64() of AMD, ticks
};
// When the GPU began and ended an operation, both on one clock, in the unit of that clock. The values are
// kept as they are given. A `size` or `clock` that is not known here leaves the times out, which is counted
// in the file.
typedef struct lockstep_gpu_times {
  uint32_t size;   // sizeof(lockstep_gpu_times)
  uint32_t clock;  // enum lockstep_clock
  uint64_t start;
  uint64_t end;
} lockstep_gpu_times;

// Marks or steps that number themselves, for languages in which each argument of a call is costly. It belongs
// to one thread at a time.
typedef struct lockstep_counter {
  const char* name;  // of the marks; NULL: training steps
  int64_t next;      // the number of the next one
} lockstep_counter;

// What liblockstep.so exports, under this name. It only ever grows at its end: a caller checks `size` before
// it uses a member that came later. All members may be called from any thread; none fails or throws. The
// table stays for the life of the process: nothing unloads the library. Other languages that can call C may
// use it directly, by dlsym().
struct lockstep_api_v1 {
  uint32_t size;     // sizeof(struct lockstep_api_v1) as the library was built
  uint32_t version;  // 1
  // These do what the functions below of like names do.
  lockstep_group (*declare_group)(const lockstep_group_info* info);
  lockstep_op (*begin)(const lockstep_op_info* info);
  void (*end)(lockstep_op op, const lockstep_gpu_times* times);
  void (*set_gpu_times)(lockstep_op op, const lockstep_gpu_times* times);
  void (*step)(int64_t number);
  void (*mark)(const char* name, int64_t value);
  // A mark or a step with the counter's number, which then grows by one.
  void (*count)(lockstep_counter* counter);
};

// Looks for the run time, once in each translation unit; several threads may do so at once and find the same.
// A program with raised privileges (AT_SECURE) loads nothing that its environment names. The answer is final,
// "nobody listens" too: a library that is loaded later is not found.
__attribute__((cold)) static inline const struct lockstep_api_v1* lockstep_resolve_(
    const struct lockstep_api_v1** slot) {
  const struct lockstep_api_v1* table;
  const char* path = getauxval(AT_SECURE) != 0 ? NULL : getenv("LOCKSTEP_LIBRARY");
#ifdef RTLD_DEFAULT
  void* symbol = dlsym(RTLD_DEFAULT, "lockstep_api_v1");
#else
  void* symbol = dlsym(NULL, "lockstep_api_v1");  // its value in strict C99 on Linux
#endif
  if (symbol == NULL && path != NULL && path[0] != '\0') {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) symbol = dlsym(library, "lockstep_api_v1");
  }
  if (symbol == NULL) (void)dlerror();  // not the host's error
  memcpy(&table, &symbol, sizeof table);
  if (table != NULL && table->size < offsetof(struct lockstep_api_v1, count)) table = NULL;
  __atomic_store_n(slot, table, __ATOMIC_RELEASE);
  return table;
}

// The run time, or NULL: the one branch. `slot` says which of three states holds: a table whose size is 0
// (not looked for yet), NULL (looked for in vain), or the run time's. The acquire pairs with the release
// above, so that a thread that sees the pointer sees the loaded library.
static inline const struct lockstep_api_v1* lockstep_api_(void) {
  static const struct lockstep_api_v1 unresolved = {0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
  static const struct lockstep_api_v1* slot = &unresolved;
  const struct lockstep_api_v1* table = __atomic_load_n(&slot, __ATOMIC_ACQUIRE);
  if (__builtin_expect(table == NULL, 1)) return NULL;
  return __builtin_expect(table->size == 0, 0) ? lockstep_resolve_(&slot) : table;
}

// 1 if somebody listens; for callers whose arguments are costly to make. The answer of a translation unit
// never changes.
static inline int lockstep_loaded(void) { return lockstep_api_() != NULL; }

// Declares a group. 0 if nothing listens; 0 also, and counted in the file, if the group is not possible (no
// members, too many, a `size` that no version had) or there is no room for it. A process has 65,536 places; a
// group takes one for each of its members that lives here, and one more. Operations on 0 are recorded without
// a group. The first call of a process opens its file and may take milliseconds; a group that is known
// already is found without a lock.
static inline lockstep_group lockstep_declare_group_info(const lockstep_group_info* info) {
  const struct lockstep_api_v1* api = lockstep_api_();
  return api == NULL ? 0 : api->declare_group(info);
}
// The same from a list of `count` global ranks in group order; `rank`: this process' index in it, -1 as
// above.
static inline lockstep_group lockstep_declare_group(const char* name, const int32_t* ranks, int32_t count,
                                                    int32_t rank) {
  const struct lockstep_api_v1* api = lockstep_api_();
  if (api == NULL) return 0;
  {
    lockstep_group_info info = LOCKSTEP_GROUP_INFO_INIT;
    info.rank = rank;
    info.name = name;
    info.ranks = ranks;
    info.count = count;
    return api->declare_group(&info);
  }
}

// The operation begins now, on the host; call it in front of the launch. Every begun operation needs one
// lockstep_end(), on any thread. 0 if nothing is recorded: it may be passed on to the calls below, which then
// do nothing.
static inline lockstep_op lockstep_begin_op(const lockstep_op_info* info) {
  const struct lockstep_api_v1* api = lockstep_api_();
  return api == NULL ? 0 : api->begin(info);
}
// The same without root, peer, number and splits: a collective of all members, counted here.
static inline lockstep_op lockstep_begin(lockstep_group group, const char* collective, uint64_t in_count,
                                         uint64_t out_count, const char* dtype, const void* stream) {
  const struct lockstep_api_v1* api = lockstep_api_();
  if (api == NULL) return 0;
  {
    lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
    info.group = group;
    info.collective = collective;
    info.dtype = dtype;
    info.in_count = in_count;
    info.out_count = out_count;
    info.stream = stream;
    return api->begin(&info);
  }
}
// The host's part is over, which for a kernel is its launch; the GPU may still be at it. `times` may be NULL,
// or come later. A second end of one operation changes nothing and is counted.
static inline void lockstep_end(lockstep_op op, const lockstep_gpu_times* times) {
  const struct lockstep_api_v1* api = lockstep_api_();
  if (api != NULL) api->end(op, times);
}
// When the GPU worked on it; once an operation, before or after its end, from any thread: the callback or the
// event that learns of it may be anywhere. The first report counts; a second one is counted in the file.
static inline void lockstep_set_gpu_times(lockstep_op op, const lockstep_gpu_times* times) {
  const struct lockstep_api_v1* api = lockstep_api_();
  if (api != NULL) api->set_gpu_times(op, times);
}

// A training step begins, now, on the calling thread. All ranks say the same number for the same step: the
// tools lay ranks beside each other by it. In timelines a step lasts until the next one of its thread.
// Numbers need not be consecutive.
static inline void lockstep_step(int64_t number) {
  const struct lockstep_api_v1* api = lockstep_api_();
  if (api != NULL) api->step(number);
}
// A named instant with a number, on the calling thread: "checkpoint", a loss, a batch size in tokens.
static inline void lockstep_mark(const char* name, int64_t value) {
  const struct lockstep_api_v1* api = lockstep_api_();
  if (api != NULL) api->mark(name, value);
}

// NOLINTEND(modernize-use-nullptr,bugprone-sizeof-expression)

#ifdef __cplusplus
}  // extern "C"

namespace lockstep {

// An operation from construction to the end of the scope, also when an exception leaves it. It can be moved,
// not copied; one that was moved from, or that was made without arguments, ends nothing. One thread at a
// time, which need not be the one that made it.
class Operation {
 public:
  Operation() : op_(0), times_() {}
  // What `info` points to is needed during the call only.
  explicit Operation(const lockstep_op_info& info) : op_(lockstep_begin_op(&info)), times_() {}
  Operation(lockstep_group group, const char* collective, uint64_t in_count, uint64_t out_count,
            const char* dtype, const void* stream = nullptr)
      : op_(lockstep_begin(group, collective, in_count, out_count, dtype, stream)), times_() {}
  Operation(Operation&& other) noexcept : op_(other.op_), times_(other.times_) { other.op_ = 0; }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  Operation& operator=(Operation&&) = delete;
  ~Operation() { end(); }

  // Ends the operation before the scope does. After that nothing happens here any more: a second call is no
  // second end.
  void end() {
    if (op_ != 0) lockstep_end(op_, times_.size != 0 ? &times_ : nullptr);
    op_ = 0;
  }
  // Kept until end(), which passes them on; the last call counts.
  void set_gpu_times(lockstep_clock clock, uint64_t start, uint64_t finish) {
    times_.size = sizeof times_;
    times_.clock = clock;
    times_.start = start;
    times_.end = finish;
  }
  // For the functions above, on any thread; 0 if nothing is recorded, or from end() on.
  lockstep_op id() const { return op_; }

 private:
  lockstep_op op_;
  lockstep_gpu_times times_;
};

namespace detail {

inline const char* text(const char* value) { return value; }
inline const char* text(const std::string& value) { return value.c_str(); }
// c10::ScalarType and its like: what an argument-dependent toString() turns into a text that lives for ever.
template <class T>
auto text(const T& value) -> decltype(toString(value)) {
  return toString(value);
}

// Name and description; the number and whether it is P2P: each alone, or as a tuple, as PyTorch's versions
// pass them. An empty description says that there is none, so that a colon in the name stays part of the
// name.
template <class Name>
void set_name(lockstep_group_info& info, const Name& name) {
  info.name = text(name);
  info.description = "";
}
template <class Name, class Description>
void set_name(lockstep_group_info& info, const std::tuple<Name, Description>& group) {
  info.name = text(std::get<0>(group));
  info.description = text(std::get<1>(group));
}
inline void set_seq(lockstep_op_info& info, int64_t seq) {
  info.seq = seq;
  if (seq >= 0) info.flags |= LOCKSTEP_OP_SEQ;
}
template <class Seq, class IsP2p>
void set_seq(lockstep_op_info& info, const std::tuple<Seq, IsP2p>& seq) {
  set_seq(info, static_cast<int64_t>(std::get<0>(seq)));
  info.flags |= std::get<1>(seq) ? LOCKSTEP_OP_P2P : LOCKSTEP_OP_COLLECTIVE;
}

// Anything that holds 64-bit numbers side by side; another list is not recorded: reading 32-bit numbers as
// 64-bit ones would record nonsense. The last argument, int before long, prefers the overload that fits.
inline const int64_t* numbers(const int64_t* first) { return first; }
inline const int64_t* numbers(const void*) { return nullptr; }
template <class List>
auto set_split(const int64_t*& first, uint32_t& count, const List& list, int)
    -> decltype(static_cast<void>(list.data()), static_cast<void>(list.size())) {
  first = numbers(list.data());
  count = first != nullptr ? static_cast<uint32_t>(list.size()) : 0;
}
template <class List>
void set_split(const int64_t*&, uint32_t&, const List&, long) {}

inline bool is_any(const char* word, const char* const* words) {
  for (; *words != nullptr; ++words) {
    if (strcmp(word, *words) == 0) return true;
  }
  return false;
}

}  // namespace detail

// For call sites shaped like PyTorch's RECORD_PARAM_COMMS. `seq`: a number, or a tuple (number, is it P2P);
// `pg`: a name, or a tuple (name, description); `rank`: as there, the root of a rooted collective, the peer
// of send and recv, else the own rank in the group; `dtype`: a text, or what `toString` takes; splits: lists
// of 64-bit numbers; `is_async`: -1 not said.
template <class Seq, class Group, class Name, class Type, class InSplit, class OutSplit>
Operation record_param_comms(const Seq& seq, const Group& pg, int64_t rank, const Name& collective,
                             int64_t in_nelems, int64_t out_nelems, const Type& dtype,
                             const InSplit& in_split, const OutSplit& out_split, int64_t start,
                             int64_t stride, int64_t world_size, int is_async = -1) {
  static const char* const kRooted[] = {"broadcast",      "reduce",      "gather", "scatter",
                                        "_broadcast_oop", "_reduce_oop", nullptr};
  static const char* const kPaired[] = {"send", "recv", nullptr};
  lockstep_group_info group = LOCKSTEP_GROUP_INFO_INIT;
  detail::set_name(group, pg);
  group.count = static_cast<int32_t>(world_size);
  group.start = static_cast<int32_t>(start);
  group.stride = static_cast<int32_t>(stride);
  lockstep_op_info info = LOCKSTEP_OP_INFO_INIT;
  info.collective = detail::text(collective);
  info.dtype = detail::text(dtype);
  info.in_count = static_cast<uint64_t>(in_nelems);
  info.out_count = static_cast<uint64_t>(out_nelems);
  detail::set_seq(info, seq);
  if (is_async >= 0) info.flags |= is_async != 0 ? LOCKSTEP_OP_ASYNC : LOCKSTEP_OP_SYNC;
  detail::set_split(info.in_split, info.in_splits, in_split, 0);
  detail::set_split(info.out_split, info.out_splits, out_split, 0);
  if (detail::is_any(info.collective, kRooted))
    info.root = static_cast<int32_t>(rank);
  else if (detail::is_any(info.collective, kPaired))
    info.peer = static_cast<int32_t>(rank);
  else
    group.rank = static_cast<int32_t>(rank);
  info.group = lockstep_declare_group_info(&group);
  return Operation(info);
}

}  // namespace lockstep

#define LOCKSTEP_JOIN_(a, b) a##b
#define LOCKSTEP_JOIN(a, b) LOCKSTEP_JOIN_(a, b)
// An operation until the end of the enclosing scope, at most one a line. Arguments are not evaluated when
// nobody listens:
//   (seq, pg, rank, collective, in_nelems, out_nelems, dtype, in_split, out_split, start, stride,
//    world_size[, is_async])
#define LOCKSTEP_RECORD_PARAM_COMMS(...)                             \
  const ::lockstep::Operation LOCKSTEP_JOIN(lockstep_op_, __LINE__)( \
      lockstep_loaded() ? ::lockstep::record_param_comms(__VA_ARGS__) : ::lockstep::Operation())
// The same with the input and output tensors, which are not looked at, behind pg.
#define LOCKSTEP_RECORD_PARAM_COMMS_DATA(seq, pg, inputs, outputs, ...) \
  LOCKSTEP_RECORD_PARAM_COMMS(seq, pg, __VA_ARGS__)
#endif  // __cplusplus

#endif  // LOCKSTEP_LOCKSTEP_H
