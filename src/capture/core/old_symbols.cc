// SPDX-License-Identifier: Apache-2.0
// glibc 2.32 and 2.34 gave some functions new versions without changing them. The old versions are asked for,
// so that a library made on a new machine also loads in an older image: for one that is preloaded a missing
// version ends the program. The directives count for the whole library, which is one unit after link-time
// optimisation.
#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(LOCKSTEP_OLD_SYMBOLS)
#define OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
OLD(dladdr);
OLD(dlclose);
OLD(dlerror);
OLD(dlopen);
OLD(dlsym);
OLD(pthread_attr_setstacksize);
__asm__(".symver pthread_condattr_setclock,pthread_condattr_setclock@GLIBC_2.3.3");
OLD(pthread_create);
OLD(pthread_key_create);
OLD(pthread_mutex_trylock);
OLD(pthread_setspecific);
OLD(pthread_sigmask);
#endif
