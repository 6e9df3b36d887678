// SPDX-License-Identifier: Apache-2.0
// The header in a C++11 translation unit. "loaded" as argument: a run time is expected to be found, else
// none.
#include "lockstep/lockstep.h"

#include <cstdio>
#include <utility>
#include <vector>

extern "C" int calls_from_c(int expect_loaded);

namespace c10 {
enum class ScalarType { Float };
const char* toString(ScalarType) { return "Float"; }
}  // namespace c10

static int evaluations = 0;
static int64_t counted(int64_t value) {
  ++evaluations;
  return value;
}

static bool calls_from_cxx(bool expect_loaded) {
  const int32_t ranks[] = {0, 1};
  const lockstep_group group = lockstep_declare_group("cxx:0", ranks, 2, 0);
  lockstep::Operation first(group, "allreduce", 4, 4, "Float");
  first.set_gpu_times(LOCKSTEP_CLOCK_GPU_NS, 1, 2);
  lockstep::Operation moved(std::move(first));
  const bool recorded = moved.id() != 0;
  moved.end();
  {
    const std::vector<int64_t> splits;
    LOCKSTEP_RECORD_PARAM_COMMS(std::make_tuple(counted(1), false),
                                std::make_tuple(std::string("0"), std::string("default_pg")), 1, "broadcast",
                                8, 8, c10::ScalarType::Float, splits, splits, 0, 1, 2);
    LOCKSTEP_RECORD_PARAM_COMMS_DATA(2, "0", splits, splits, 0, std::string("allreduce"), 8, 8, "Float",
                                     splits, splits, 0, 1, 2, true);
  }
  return recorded == expect_loaded && (group != 0) == expect_loaded && evaluations == (expect_loaded ? 1 : 0);
}

int main(int argc, char** argv) {
  const bool expect_loaded = argc > 1 && std::string(argv[1]) == "loaded";
  // Twice: the first call of a translation unit finds out, the others know.
  for (int round = 0; round < 2; ++round) {
    evaluations = 0;
    if (!calls_from_cxx(expect_loaded) || calls_from_c(expect_loaded) == 0) {
      std::fprintf(stderr, "round %d: expected %s\n", round, expect_loaded ? "a run time" : "no run time");
      return 1;
    }
  }
  return 0;
}
