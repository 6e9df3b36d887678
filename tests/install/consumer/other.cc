// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

int call_from_other();
int call_from_other() {
  lockstep_mark("other", 1);
  return lockstep_loaded();
}
