// SPDX-License-Identifier: Apache-2.0
// Open MPI's mpirun and Slurm's srun themselves, where they are installed and work; docs/testing.md says how
// to get a Slurm of one node. The job is the example, whose ranks are then those of the launcher.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

constexpr int kRanks = 4;

class RealLaunchers : public Workplace {
 protected:
  static Argv join(Argv first, const Argv& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }
  static Argv example() {
    return {LOCKSTEP_BIN_DIR "/lockstep-custom-allreduce",
            "--steps",
            "1",
            "--iterations",
            "1",
            "--max-bytes",
            "4096"};
  }
  static std::string host() {
    char name[256] = {};
    gethostname(name, sizeof(name) - 1);
    return name;
  }
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "launchers load our libraries, and have no sanitizer's run time";
  }
  // Around the launcher, then inside it: one database with all ranks either way.
  void expect_whole_runs(const std::string& name, const Argv& launcher,
                         const std::map<std::string, std::string>& environment) const {
    Finished around =
        do_here(join(lockstep({"trace", "-o", "around.db"}), join(launcher, example())), environment);
    ASSERT_EQ(around.code, 0) << around;
    expect_whole("around.db", name);
    Finished inside =
        do_here(join(launcher, join(lockstep({"trace", "-o", "inside.db"}), example())), environment);
    ASSERT_EQ(inside.code, 0) << inside;
    expect_whole("inside.db", name);
    EXPECT_FALSE(exists("inside.run.2"));
  }
  void expect_whole(const std::string& database, const std::string& launcher) const {
    auto document = info(database);
    EXPECT_TRUE(document["losses"].empty()) << document["losses"];
    ASSERT_EQ(document["process_list"].size(), size_t{kRanks});
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto& process = document["process_list"][static_cast<size_t>(rank)];
      EXPECT_EQ(process["rank"], rank) << process;
      EXPECT_EQ(process["world"], kRanks) << process;
      EXPECT_EQ(process["host"], host()) << process;
      EXPECT_EQ(process["launcher"], launcher) << process;
    }
    ASSERT_EQ(document["comm_list"].size(), 1u);
    EXPECT_EQ(document["comm_list"][0]["ranks"], kRanks);
    EXPECT_EQ(document["comm_list"][0]["members"].size(), size_t{kRanks});
  }
};

TEST_F(RealLaunchers, OpenMpi) {
  std::map<std::string, std::string> as_root = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                                {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  Argv mpirun = {"mpirun", "--oversubscribe", "-np", std::to_string(kRanks)};
  if (do_here(join(mpirun, {"true"}), as_root).code != 0) GTEST_SKIP() << "no mpirun";
  expect_whole_runs("openmpi", mpirun, as_root);
}

// examples/nccl/mpi_hybrid: two processes with three GPUs each, called by one thread in groups, or by a
// thread for each.
TEST_F(RealLaunchers, ProcessesWithSeveralGpusEach) {
#ifndef LOCKSTEP_E2E_MPI_HYBRID
  GTEST_SKIP() << "no MPI to build it with";
#else
  const std::map<std::string, std::string> as_root = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                                      {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  const Argv mpirun = {"mpirun", "--oversubscribe", "-np", "2"};
  if (do_here(join(mpirun, {"true"}), as_root).code != 0) GTEST_SKIP() << "no mpirun";
  for (const std::string how : {"groups", "threads"}) {
    Finished finished = do_here(
        join(lockstep({"trace", "-o", how + ".db"}), join(mpirun, {LOCKSTEP_E2E_MPI_HYBRID, "3", how})),
        as_root);
    ASSERT_EQ(finished.code, 0) << finished;
    const auto document = info(how + ".db");
    EXPECT_TRUE(document["losses"].empty()) << document["losses"];
    ASSERT_EQ(document["process_list"].size(), 2u);
    EXPECT_EQ(document["ops"], 2 * 3 * 4);
    ASSERT_EQ(document["comm_list"].size(), 1u);
    EXPECT_EQ(document["comm_list"][0]["ranks"], 6);
    EXPECT_EQ(document["comm_list"][0]["members"].size(), 6u) << document["comm_list"];
    EXPECT_EQ(do_here(lockstep({"show", how + ".db", "--op", "3"})).out.find("not called"),
              std::string::npos);
  }
#endif
}

TEST_F(RealLaunchers, Slurm) {
  Argv srun = {"srun", "--overcommit", "--immediate=5", "-n", std::to_string(kRanks)};
  if (do_here(join(srun, {"true"})).code != 0) GTEST_SKIP() << "no srun, or no node for it";
  expect_whole_runs("slurm", srun, {});
}

}  // namespace
}  // namespace lockstep::test
