// SPDX-License-Identifier: Apache-2.0
// Since glibc 2.34 __libc_start_main runs a program's constructors itself; the old version, which every glibc has, is given a function
// that does.
#include <stddef.h>

#if defined(__x86_64__)
__asm__(".symver lockstep_old_start,__libc_start_main@GLIBC_2.2.5");
#else
__asm__(".symver lockstep_old_start,__libc_start_main@GLIBC_2.17");
#endif
typedef int Main(int, char**, char**);
typedef void Constructor(int, char**, char**);
extern int lockstep_old_start(Main*, int, char**, Constructor*, void (*)(void), void (*)(void), void*);

extern Constructor* __preinit_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __preinit_array_end[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));
extern void _init(void) __attribute__((visibility("hidden")));

static void construct(int count, char** words, char** environment) {
  for (Constructor** each = __preinit_array_start; each != __preinit_array_end; ++each) (*each)(count, words, environment);
  _init();
  for (Constructor** each = __init_array_start; each != __init_array_end; ++each) (*each)(count, words, environment);
}

__attribute__((visibility("hidden"))) int __wrap___libc_start_main(Main* program, int count, char** words, Constructor* init,
                                                                   void (*fini)(void), void (*loader_fini)(void), void* stack) {
  return lockstep_old_start(program, count, words, init != NULL ? init : construct, fini, loader_fini, stack);
}
