// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests that call lockstep.h with the library behind it: a run directory, and child processes
// in which the header finds the library as an application would.
#pragma once
#include "lockstep/lockstep.h"
#include "tests/support/child.h"
#include "tests/support/lks_file.h"
#include "tests/support/places.h"

namespace lockstep::test {

class ApiCapture : public ::testing::Test {
 protected:
  Environment settings(const char* mode = "default", const char* retain = "stream") const {
    return {{"LOCKSTEP_LIBRARY", LOCKSTEP_LIB_DIR "/liblockstep.so"},
            {"LOCKSTEP_DIR", run_.path()},
            {"LOCKSTEP_MODE", mode},
            {"LOCKSTEP_RETAIN", retain},
            {"RANK", "5"},
            {"WORLD_SIZE", "8"}};
  }
  template <class Body>
  LksFile record(const Environment& environment, Body body) {
    Exit exit = run_child(environment, std::move(body));
    EXPECT_TRUE(exit.ok()) << exit;
    return run_.file();
  }
  template <class Body>
  LksFile record(Body body) {
    return record(settings(), std::move(body));
  }

  static lockstep_group declare_pair() {
    const int32_t ranks[] = {1, 5};
    return lockstep_declare_group("pair:2", ranks, 2, -1);
  }
  static lockstep_group declare_progression(const char* name, int32_t start, int32_t stride, int32_t count,
                                            int32_t rank = -1) {
    lockstep_group_info info = LOCKSTEP_GROUP_INFO_INIT;
    info.rank = rank;
    info.name = name;
    info.count = count;
    info.start = start;
    info.stride = stride;
    return lockstep_declare_group_info(&info);
  }
  static lockstep_gpu_times gpu_times(uint64_t start, uint64_t end,
                                      lockstep_clock clock = LOCKSTEP_CLOCK_MONOTONIC) {
    return {sizeof(lockstep_gpu_times), static_cast<uint32_t>(clock), start, end};
  }
  static std::vector<int32_t> members(const LksFile& file, uint32_t comm) {
    std::vector<int32_t> ranks;
    for (const auto& piece : file.all<format::GroupRanksDef>(format::Def::kGroupRanks)) {
      if (piece.head.id == comm) ranks.insert(ranks.end(), piece.ranks, piece.ranks + piece.n);
    }
    return ranks;
  }

  RunDirectory run_;
};

}  // namespace lockstep::test
