// SPDX-License-Identifier: Apache-2.0
// The installed header in C99.
#include <lockstep/lockstep.h>

int main(void) {
  const int32_t ranks[] = {0, 1};
  const lockstep_group group = lockstep_declare_group("consumer:0", ranks, 2, 0);
  lockstep_end(lockstep_begin(group, "allreduce", 1, 1, "Float", NULL), NULL);
  lockstep_step(1);
  return lockstep_loaded();
}
