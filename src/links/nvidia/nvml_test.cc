// SPDX-License-Identifier: Apache-2.0
// Against a library of ours in NVML's place (sim/nvml).
#include "links/nvidia/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/temporary_directory.h"
#include "links/counters.h"
#include "links/judge/judge.h"
#include "tests/support/places.h"

namespace lockstep::links::nvidia {
namespace {

class Nvml : public ::testing::Test {
 protected:
  Nvml() {
    setenv("LOCKSTEP_NVML", LOCKSTEP_LIB_DIR "/libfake-nvml.so", 1);
    setenv("LOCKSTEP_FAKE_NVML", script_.c_str(), 1);
  }
  ~Nvml() override {
    unsetenv("LOCKSTEP_NVML");
    unsetenv("LOCKSTEP_FAKE_NVML");
  }
  GpuFacts facts_of(const std::string& script) const {
    std::ofstream(script_) << script;
    return facts();
  }
  std::vector<analysis::Finding> troubles_of(const std::string& script) const {
    LinksRecord record;
    record.before.gpus = facts_of(script);
    std::vector<analysis::Finding> findings = judge(record, nullptr);
    std::erase_if(findings, [](const auto& finding) {
      return class_of(finding.id) == analysis::FindingClass::kEvidenceMissing;
    });
    return findings;
  }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::make();
  const std::string script_ = directory_->path() + "/script";
};

TEST_F(Nvml, TellsOfHealthyGpus) {
  const GpuFacts facts = facts_of("");
  EXPECT_EQ(facts.absent, "");
  EXPECT_EQ(facts.driver, "570.86.10");
  ASSERT_EQ(facts.gpus.size(), 4u);
  const Gpu& gpu = facts.gpus[2];
  EXPECT_EQ(gpu.index, 2u);
  EXPECT_EQ(gpu.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpu.pci, "0000:1d:00.0");
  EXPECT_EQ(gpu.uuid, "GPU-00000000-0000-0000-0000-100000000002");
  ASSERT_EQ(gpu.links.size(), 18u);
  EXPECT_EQ(gpu.links[17].is_up, true);
  EXPECT_EQ(gpu.links[17].errors,
            (std::map<std::string, uint64_t>{{"crc", 0}, {"recovery", 0}, {"replay", 0}}));
  EXPECT_EQ(gpu.links[17].remote_pci, "0000:c1:00.0");
  EXPECT_NEAR(gpu.link_rate.value_or(0), 26.562, 1e-9);
  EXPECT_EQ(gpu.fabric_state, 3u);
  EXPECT_EQ(gpu.peer_status.size(), 3u);
  EXPECT_TRUE(gpu.unanswered.empty());
  EXPECT_TRUE(troubles_of("").empty());
}

TEST_F(Nvml, NamesAllProcessesOfABusyGpu) {
  const GpuFacts facts = facts_of("answer nvmlDeviceGetComputeRunningProcesses_v3 1 100\n");
  ASSERT_EQ(facts.gpus.size(), 4u);
  ASSERT_EQ(facts.gpus[1].processes.size(), 100u);
  EXPECT_EQ(facts.gpus[1].processes[99], 1099u);
  EXPECT_TRUE(facts.gpus[0].processes.empty());
}

TEST_F(Nvml, NamesWhatIsWrong) {
  struct Case {
    const char *script, *id, *says;
  };
  const Case cases[] = {
      {"down 1 4\ndown 1 7\n", "slow-link.nvlink-down",
       "GPU 1 (0000:1c:00.0) has 2 links of 18 down (4, 7); its siblings have 0"},
      {"field 161 2 3 148\n", "transport-error.since-boot", "1 error counter of links is not zero"},
      {"answer nvmlDeviceGetGpuFabricInfoV 3 2\n", "misconfigured.fabric",
       "GPU 3 (0000:1e:00.0) has not joined the NVLink fabric: its registration is in progress"},
      {"answer nvmlDeviceGetCurrentClocksThrottleReasons 0 72\n", "gpu-late.throttled",
       "GPU 0 (0000:1b:00.0) is slowed down: hardware slowdown, hardware thermal limit"},
      {"answer nvmlDeviceGetRemappedRows 1 1\n", "gpu-late.memory", "GPU 1 (0000:1c:00.0) has memory"},
  };
  for (const Case& of : cases) {
    const auto found = troubles_of(of.script);
    ASSERT_EQ(found.size(), 1u) << of.script;
    EXPECT_EQ(id_text(found[0].id), of.id);
    EXPECT_EQ(found[0].statement.find(of.says), 0u) << found[0].statement;
  }
  EXPECT_TRUE(troubles_of("down -1 17\n").empty()) << "a board leaves a link out";
}

TEST_F(Nvml, CountersBecomeWhatRose) {
  const auto counters = [this](const std::string& script) {
    Machine machine;
    machine.gpus = facts_of(script).gpus;
    return counters_of(machine);
  };
  const Counters before = counters("field 138 0 -1 1000\nfield 94 0 0 5\nfield 161 0 2 1\n");
  const Increases rose =
      increases(before, counters("field 138 0 -1 3048\nfield 94 0 0 9\nfield 161 0 2 1\nfield 161 0 3 7\n"));
  const auto amount = [&](const char* name) {
    return rose.at({DeviceKind::kGpu, "0000:1b:00.0", name}).amount;
  };
  EXPECT_EQ(amount("nvlink_tx_bytes"), 2048u * 1024) << "the library counts KiB";
  EXPECT_EQ(amount("nvlink_rx_bytes"), 0u);
  EXPECT_EQ(amount("pcie_replay"), 4u);
  EXPECT_EQ(amount("nvlink_replay"), 7u) << "over all links";
}

TEST_F(Nvml, AQuestionThatFailsLeavesOutItsAnswerAlone) {
  for (const char* const function : {"nvmlDeviceGetName",
                                     "nvmlDeviceGetUUID",
                                     "nvmlDeviceGetPciInfo_v3",
                                     "nvmlDeviceGetCurrPcieLinkGeneration",
                                     "nvmlDeviceGetCurrPcieLinkWidth",
                                     "nvmlDeviceGetMaxPcieLinkGeneration",
                                     "nvmlDeviceGetMaxPcieLinkWidth",
                                     "nvmlDeviceGetCurrentClocksThrottleReasons",
                                     "nvmlDeviceGetClockInfo",
                                     "nvmlDeviceGetMaxClockInfo",
                                     "nvmlDeviceGetTemperature",
                                     "nvmlDeviceGetPowerUsage",
                                     "nvmlDeviceGetEnforcedPowerLimit",
                                     "nvmlDeviceGetUtilizationRates",
                                     "nvmlDeviceGetTotalEccErrors",
                                     "nvmlDeviceGetRemappedRows",
                                     "nvmlDeviceGetComputeRunningProcesses_v3",
                                     "nvmlDeviceGetFieldValues",
                                     "nvmlDeviceGetGpuFabricInfoV",
                                     "nvmlDeviceGetHandleByIndex_v2"})
    for (const char* const code : {"3", "4", "15", "999"}) {
      const GpuFacts facts = facts_of(std::string("fail ") + function + " 1 " + code + "\n");
      ASSERT_EQ(facts.gpus.size(), 4u) << function;
      ASSERT_FALSE(facts.gpus[1].unanswered.empty()) << function;
      EXPECT_EQ(facts.gpus[1].unanswered[0].find(std::string(function) + ": "), 0u)
          << facts.gpus[1].unanswered[0];
      EXPECT_TRUE(facts.gpus[0].unanswered.empty()) << function;
      EXPECT_EQ(facts.gpus[3].links.size(), 18u) << function;
      EXPECT_EQ(facts.gpus[1].processes.size(), 0u) << function;
    }
  const GpuFacts lost = facts_of("fail nvmlDeviceGetFieldValues 2 15\n");
  EXPECT_EQ(lost.gpus[2].unanswered[0], "nvmlDeviceGetFieldValues: GPU is lost");
  EXPECT_TRUE(lost.gpus[2].links[0].errors.empty()) << "not read is not zero";
  EXPECT_FALSE(lost.gpus[2].link_rate);
}

TEST_F(Nvml, AFieldThatFailsIsNotZero) {
  const GpuFacts facts =
      facts_of("field_fail 161 0 3 3\nfield_type 162 0 3 77\nfield_type 163 0 3 4\nfield 163 0 3 -1\n");
  EXPECT_TRUE(facts.gpus[0].links[3].errors.empty());
  EXPECT_EQ(facts.gpus[0].links[4].errors.size(), 3u);
}

TEST_F(Nvml, ALibraryThatLiesIsHarmless) {
  const GpuFacts facts = facts_of(
      "gpus 4000000000\nlinks 4000000000\ntext nvmlDeviceGetName -1 full\ntext nvmlDeviceGetUUID -1 full\n"
      "text nvmlSystemGetDriverVersion -1 full\nanswer nvmlDeviceGetComputeRunningProcesses_v3 -1 4000000000\n");
  EXPECT_EQ(facts.gpus.size(), 64u);
  EXPECT_EQ(facts.gpus[0].links.size(), 36u);
  EXPECT_EQ(facts.gpus[0].name, std::string(96, 'x'));
  EXPECT_EQ(facts.driver.size(), 96u);
  EXPECT_TRUE(facts.gpus[0].processes.empty());
  EXPECT_FALSE(facts.gpus[0].unanswered.empty());
}

TEST_F(Nvml, ALibraryThatDoesNotStartIsSaid) {
  EXPECT_EQ(facts_of("fail nvmlInit_v2 -1 9\n").absent, "NVML does not start: Unknown Error");
  EXPECT_TRUE(facts_of("fail nvmlDeviceGetCount_v2 -1 9\ngpus 0\n").gpus.empty());
  setenv("LOCKSTEP_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  EXPECT_NE(facts().absent.find("cannot be loaded"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::links::nvidia
