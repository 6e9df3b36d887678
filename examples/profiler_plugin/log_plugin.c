/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest profiler plugin of NCCL that says something: one line on stderr for each call into it. To
 * learn from, not for jobs: it formats and writes in the threads that it is called on. Interface version 5
 * (NCCL 2.28; newer ones adapt to it). cc -shared -fPIC -o liblog.so log_plugin.c;
 * NCCL_PROFILER_PLUGIN=$PWD/liblog.so ./job */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What begins every event. Behind it lie the fields of its type, which docs/nccl-events.md names; they are
 * read here for CollApi alone. All of it is valid during the call only. */
struct event {
  uint64_t type; /* one bit */
  void* parent;  /* the handle of another event, maybe of another process; NULL */
  int rank;
  struct {
    const char* func;
    size_t count;
    const char* datatype;
  } coll_api;
};

static const char* type_name(uint64_t type) {
  static const char* const names[] = {"Group",     "Coll",      "P2p",      "ProxyOp",
                                      "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
                                      "GroupApi",  "CollApi",   "P2pApi",   "KernelLaunch"};
  int bit = 0;
  while (bit < 12 && (type >> bit & 1) == 0) ++bit;
  return bit < 12 ? names[bit] : "?";
}
static uintptr_t next_handle = 1; /* numbers, not pointers: a handle may come back late, twice, or never */

/* Once for each communicator. The mask is one for the process: who writes it last wins. The context must not
 * be NULL. */
static int init(void** context, uint64_t comm, int* mask, const char* name, int nodes, int ranks, int rank,
                void* logger) {
  (void)logger;
  *context = (void*)__atomic_fetch_add(&next_handle, 1, __ATOMIC_RELAXED);
  __atomic_store_n(mask, 0xfff, __ATOMIC_RELAXED); /* everything: KernelCh and the network cost NCCL time */
  fprintf(stderr, "init context=%p comm=%llx name=%s rank=%d of %d on %d hosts\n", *context,
          (unsigned long long)comm, name ? name : "", rank, ranks, nodes);
  return 0; /* an error here has crashed several releases */
}
static int start(void* context, void** handle, struct event* event) {
  *handle = (void*)__atomic_fetch_add(&next_handle, 1,
                                      __ATOMIC_RELAXED); /* on every path: NCCL does not clear it */
  if (event->type == 0x200)
    fprintf(stderr, "start %p CollApi parent=%p context=%p %s %zu x %s\n", *handle, event->parent, context,
            event->coll_api.func, event->coll_api.count, event->coll_api.datatype);
  else
    fprintf(stderr, "start %p %s parent=%p context=%p\n", *handle, type_name(event->type), event->parent,
            context);
  return 0;
}
static int stop(void* handle) { return fprintf(stderr, "stop %p\n", handle) < 0; }
static int state(void* handle, int state, void* arguments) {
  (void)arguments; /* NULL or without a value for states that carry none */
  return fprintf(stderr, "state %p %d\n", handle, state) < 0;
}
static int finalize(void* context) { return fprintf(stderr, "finalize context=%p\n", context) < 0; }

__attribute__((visibility("default"))) struct {
  const char* name;
  int (*init)(void**, uint64_t, int*, const char*, int, int, int, void*);
  int (*start)(void*, void**, struct event*);
  int (*stop)(void*);
  int (*state)(void*, int, void*);
  int (*finalize)(void*);
} ncclProfiler_v5 = {"log", init, start, stop, state, finalize};
