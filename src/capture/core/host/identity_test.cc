// SPDX-License-Identifier: Apache-2.0
#include "capture/core/host/identity.h"
#include "capture/core/host/visible_devices.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capture/core/clock.h"

namespace lockstep::capture {
namespace {

constexpr const char* kVariables[] = {"RANK",
                                      "LOCAL_RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_WORLD_SIZE",
                                      "GROUP_RANK",
                                      "GROUP_WORLD_SIZE",
                                      "TORCHELASTIC_RUN_ID",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "PMIX_NAMESPACE",
                                      "SLURM_PROCID",
                                      "SLURM_LOCALID",
                                      "SLURM_NTASKS",
                                      "SLURM_NTASKS_PER_NODE",
                                      "SLURM_NODEID",
                                      "SLURM_NNODES",
                                      "SLURM_JOB_ID",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "PMI_JOBID",
                                      "MPI_LOCALRANKID",
                                      "MPI_LOCALNRANKS",
                                      "PMIX_RANK",
                                      "NCCL_HOSTID",
                                      "CUDA_VISIBLE_DEVICES",
                                      "HIP_VISIBLE_DEVICES",
                                      "ROCR_VISIBLE_DEVICES"};

Identity identity_with(const std::vector<std::pair<const char*, const char*>>& environment) {
  for (const char* name : kVariables) unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name, value, 1);
  return read_identity();
}

TEST(Identity, WithoutALauncherNothingIsClaimed) {
  Identity identity = identity_with({});
  EXPECT_STREQ(identity.launcher, "none");
  EXPECT_EQ(identity.rank, -1);
  EXPECT_EQ(identity.world, -1);
  EXPECT_EQ(identity.nodes, -1);
  EXPECT_STREQ(identity.job_id, "");
  EXPECT_STREQ(identity.visible_devices, "");
}

TEST(Identity, TorchrunInsideSlurm) {
  Identity identity = identity_with({{"RANK", "9"},
                                     {"LOCAL_RANK", "1"},
                                     {"WORLD_SIZE", "16"},
                                     {"LOCAL_WORLD_SIZE", "8"},
                                     {"GROUP_RANK", "1"},
                                     {"TORCHELASTIC_RUN_ID", "none"},
                                     {"SLURM_PROCID", "1"},
                                     {"SLURM_NTASKS", "2"},
                                     {"SLURM_NNODES", "2"},
                                     {"SLURM_JOB_ID", "4711"}});
  EXPECT_STREQ(identity.launcher, "torchrun");
  EXPECT_EQ(identity.rank, 9);
  EXPECT_EQ(identity.local_rank, 1);
  EXPECT_EQ(identity.world, 16);
  EXPECT_EQ(identity.local_world, 8);
  EXPECT_EQ(identity.node_rank, 1);
  EXPECT_EQ(identity.nodes, 2);
  EXPECT_STREQ(identity.job_id, "4711");
}

TEST(Identity, SlurmOpenMpiAndPmi) {
  EXPECT_STREQ(
      identity_with({{"SLURM_PROCID", "3"}, {"SLURM_LOCALID", "3"}, {"SLURM_NTASKS_PER_NODE", "8"}}).launcher,
      "slurm");
  Identity openmpi = identity_with(
      {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_STREQ(openmpi.launcher, "openmpi");
  EXPECT_EQ(openmpi.rank, 2);
  EXPECT_EQ(openmpi.world, 4);
  EXPECT_EQ(openmpi.local_rank, 0);
  Identity pmi = identity_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  EXPECT_STREQ(pmi.launcher, "pmi");
  EXPECT_EQ(pmi.rank, 1);
}

TEST(Identity, OddNumbersAreUnknown) {
  for (const char* odd : {"", "x", "-3", "99999999999999999999", "4294967296"}) {
    EXPECT_EQ(identity_with({{"RANK", odd}}).rank, -1) << odd;
  }
  EXPECT_EQ(identity_with({{"RANK", "0"}}).rank, 0);
}

TEST(Identity, LongTextsAreCut) {
  std::string text(5000, 'v');
  Identity identity = identity_with({{"CUDA_VISIBLE_DEVICES", text.c_str()},
                                     {"NCCL_HOSTID", text.c_str()},
                                     {"TORCHELASTIC_RUN_ID", text.c_str()},
                                     {"RANK", "0"}});
  EXPECT_EQ(strlen(identity.visible_devices), sizeof identity.visible_devices - 1);
  EXPECT_EQ(strlen(identity.host_id), sizeof identity.host_id - 1);
  EXPECT_EQ(strlen(identity.job_id), sizeof identity.job_id - 1);
}

// As HIP 5.2.3 was seen to choose among four GPUs.
TEST(Identity, ListsOfVisibleDevicesAreMadeOne) {
  const auto visible = [](Maker maker, const char* cuda, const char* hip, const char* rocr) {
    identity_with(
        {{"CUDA_VISIBLE_DEVICES", cuda}, {"HIP_VISIBLE_DEVICES", hip}, {"ROCR_VISIBLE_DEVICES", rocr}});
    char list[256];
    read_visible_devices(maker, list);
    return std::string(list);
  };
  EXPECT_EQ(visible(Maker::kAmd, "", "", ""), "");
  EXPECT_EQ(visible(Maker::kAmd, "3", "", ""), "3");
  EXPECT_EQ(visible(Maker::kAmd, "3", "1", ""), "1");
  EXPECT_EQ(visible(Maker::kAmd, "", "", "2,3"), "2,3");
  EXPECT_EQ(visible(Maker::kAmd, "", "1", "2,3"), "3");
  EXPECT_EQ(visible(Maker::kAmd, "1,0", "", "4,6,7"), "6,4");
  EXPECT_EQ(visible(Maker::kAmd, "2,3", "", "2,3"), "-") << "HIP sees none";
  EXPECT_EQ(visible(Maker::kAmd, "", "0,5,1", "2,3"), "2");
  EXPECT_EQ(visible(Maker::kAmd, "", "1", "GPU-1234,GPU-5678"), "GPU-5678");
  EXPECT_EQ(visible(Maker::kAmd, "", "GPU-1234", "2,3"), "-");
  EXPECT_EQ(visible(Maker::kOther, "2,3", "", "2,3"), "2,3") << "Slurm sets both";
  EXPECT_EQ(visible(Maker::kOther, "", "1", "2"), "");
  const std::string one = "0", long_list(300, '7'), many(300, ',');
  EXPECT_EQ(visible(Maker::kAmd, one.c_str(), "", long_list.c_str()), "-");
  EXPECT_EQ(visible(Maker::kAmd, "99999999999999999999999", "", many.c_str()), "-");
}

TEST(Identity, ThisProcess) {
  // A name with blanks and parentheses stands in the middle of /proc/self/stat.
  prctl(PR_SET_NAME, "a) 1 2 (b");
  Identity identity = identity_with({});
  EXPECT_EQ(identity.pid, getpid());
  EXPECT_GT(identity.start_ticks, 0u);
  EXPECT_NE(identity.pid_namespace, 0u);
  int64_t age = clock_ns(CLOCK_REALTIME) - identity.start_realtime_ns;
  EXPECT_GT(age, -1'000'000'000);
  EXPECT_LT(age, int64_t{3600} * 1'000'000'000);
  EXPECT_EQ(identity_with({}).start_ticks, identity.start_ticks);
  unsigned char zero[16] = {};
  EXPECT_NE(memcmp(identity.boot_id, zero, sizeof zero), 0);
}

TEST(Identity, TheHeaderTakesItAll) {
  auto header = std::make_unique<format::FileHeader>();
  Identity identity = identity_with({{"RANK", "4"}, {"CUDA_VISIBLE_DEVICES", "0,3"}});
  store_identity(identity, header.get());
  EXPECT_EQ(header->pid, getpid());
  EXPECT_EQ(header->rank, 4);
  EXPECT_STREQ(header->visible_devices, "0,3");
  EXPECT_STREQ(header->host, identity.host);
  EXPECT_GT(header->argv_bytes, 0u);
  EXPECT_NE(strstr(header->argv, "identity_test"), nullptr);
}

}  // namespace
}  // namespace lockstep::capture
