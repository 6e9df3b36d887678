// SPDX-License-Identifier: Apache-2.0
// Open MPI's mpirun and Slurm's srun themselves, where they are installed and work; docs/testing.md says how to get a
// Slurm of one node. The job is the example, whose ranks are then those of the launcher.
#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

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

TEST_F(RealLaunchers, Slurm) {
  Argv srun = {"srun", "--overcommit", "--immediate=5", "-n", std::to_string(kRanks)};
  if (do_here(join(srun, {"true"})).code != 0) GTEST_SKIP() << "no srun, or no node for it";
  expect_whole_runs("slurm", srun, {});
}

}  // namespace
}  // namespace lockstep::test
