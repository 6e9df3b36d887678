// SPDX-License-Identifier: Apache-2.0
// glibc 2.32 and 2.34 gave some functions new versions without changing them. The old versions are asked for,
// so that a library made on a new machine also loads in an older image: for one that is preloaded a missing
// version ends the program. The directives count for the whole library, which is one unit after link-time
// optimisation.
#include <features.h>

#if defined(__GLIBC__) && defined(LOCKSTEP_OLD_SYMBOLS)
#if defined(__aarch64__)
#define OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_2.17")  // its first glibc
#elif defined(__x86_64__)
#define OLD(name, version) __asm__(".symver " #name "," #name "@GLIBC_" #version)
#else
#define OLD(name, version)
#endif
OLD(dladdr, 2.2.5);
OLD(dlclose, 2.2.5);
OLD(dlerror, 2.2.5);
OLD(dlopen, 2.2.5);
OLD(dlsym, 2.2.5);
OLD(pthread_attr_setstacksize, 2.2.5);
OLD(pthread_condattr_setclock, 2.3.3);
OLD(pthread_create, 2.2.5);
OLD(pthread_key_create, 2.2.5);
OLD(pthread_mutex_trylock, 2.2.5);
OLD(pthread_setspecific, 2.2.5);
OLD(pthread_sigmask, 2.2.5);
#endif
