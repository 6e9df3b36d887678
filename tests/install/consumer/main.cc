// SPDX-License-Identifier: Apache-2.0
// The installed header in C++11, from two translation units.
#include <lockstep/lockstep.h>

int call_from_other();

int main() {
  const lockstep::Operation operation(0, "allreduce", 1, 1, "Float");
  return lockstep_loaded() + call_from_other();
}
