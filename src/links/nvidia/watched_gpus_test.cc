// SPDX-License-Identifier: Apache-2.0
// Against a library of ours in NVML's place (sim/nvml).
#include "links/nvidia/watched_gpus.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/temporary_directory.h"
#include "links/samples/sample_log.h"
#include "links/samples/sampler.h"
#include "tests/support/places.h"

namespace lockstep::links::nvidia {
namespace {

class Watched : public ::testing::Test {
 protected:
  Watched() {
    setenv("LOCKSTEP_NVML", LOCKSTEP_LIB_DIR "/libfake-nvml.so", 1);
    setenv("LOCKSTEP_FAKE_NVML", script_.c_str(), 1);
    says("");
  }
  ~Watched() override {
    unsetenv("LOCKSTEP_NVML");
    unsetenv("LOCKSTEP_FAKE_NVML");
  }
  void says(const std::string& script) const { std::ofstream(script_) << script; }

  // "-": it could not be read; "": it was not.
  using Values = std::map<std::pair<std::string, std::string>, std::string>;
  static Values read(WatchedGpus& gpus, Pace due) {
    Values values;
    gpus.read(due, [&](size_t i, std::optional<uint64_t> value) {
      values[{gpus.key(i).device, gpus.key(i).name}] = value ? std::to_string(*value) : "-";
    });
    return values;
  }

  Result<TemporaryDirectory> directory_ = TemporaryDirectory::make();
  const std::string script_ = directory_->path() + "/script";
};

TEST_F(Watched, AreReadAsOftenAsTheirCountersWant) {
  WatchedGpus gpus;
  EXPECT_EQ(gpus.size(), 4u * 11);
  for (size_t i = 0; i < gpus.size(); ++i) EXPECT_EQ(gpus.key(i).kind, DeviceKind::kGpu);
  Values values = read(gpus, Pace::kSecond);
  EXPECT_EQ(values.size(), 4u * 3);
  EXPECT_EQ((values[{"0000:1c:00.0", "throttle"}]), "0");
  EXPECT_EQ((values[{"0000:1c:00.0", "sm_clock_mhz"}]), "1980");
  EXPECT_EQ((values[{"0000:1e:00.0", "ecc_uncorrected"}]), "0");
  values = read(gpus, Pace::kTenSeconds);
  EXPECT_EQ(values.size(), 4u * 6);
  EXPECT_EQ((values[{"0000:1b:00.0", "power_mw"}]), "120000");
  EXPECT_EQ((values[{"0000:1b:00.0", "temperature_c"}]), "35");
  EXPECT_EQ(read(gpus, Pace::kTenMinutes).size(), 4u * 11);
}

TEST_F(Watched, LinksAreAddedUpAndUnitsAreBytes) {
  WatchedGpus gpus;
  says("field 161 1 2 5\nfield 161 1 17 6\nfield 138 1 -1 3\n");
  const Values values = read(gpus, Pace::kTenMinutes);
  EXPECT_EQ((values.at({"0000:1c:00.0", "nvlink_replay"})), "11");
  EXPECT_EQ((values.at({"0000:1b:00.0", "nvlink_replay"})), "0");
  EXPECT_EQ((values.at({"0000:1c:00.0", "nvlink_tx_bytes"})), "3072");
}

TEST_F(Watched, ALinkThatDoesNotAnswerMakesNoSmallerSum) {
  WatchedGpus gpus;
  says("field 161 0 2 5\nfield_fail 161 0 3 15\n");
  const Values values = read(gpus, Pace::kTenMinutes);
  EXPECT_EQ((values.at({"0000:1b:00.0", "nvlink_replay"})), "-");
  EXPECT_EQ((values.at({"0000:1b:00.0", "nvlink_crc"})), "0");
}

TEST_F(Watched, AddXidsAtTheEnd) {
  WatchedGpus gpus;
  const size_t before = gpus.size();
  says("xid 2 79\nxid 2 79\nxid 0 31\nxid 9 5\n");
  const Values values = read(gpus, Pace::kSecond);
  EXPECT_EQ(gpus.size(), before + 2);
  EXPECT_EQ((values.at({"0000:1d:00.0", "xid_79"})), "2");
  EXPECT_EQ((values.at({"0000:1b:00.0", "xid_31"})), "1");
  EXPECT_EQ(gpus.key(before).name, "xid_79");
}

TEST_F(Watched, WhatAGpuDoesNotSupportIsNotWatched) {
  says(
      "fail nvmlDeviceGetTotalEccErrors 1 3\nfield_fail 138 -1 -1 3\nfail nvmlDeviceGetPciInfo_v3 3 15\nlinks 0\n"
      "fail nvmlEventSetCreate -1 3\n");
  WatchedGpus gpus;
  const Values values = read(gpus, Pace::kTenMinutes);
  EXPECT_FALSE(values.contains({"0000:1c:00.0", "ecc_uncorrected"}));
  EXPECT_TRUE(values.contains({"0000:1b:00.0", "ecc_uncorrected"}));
  EXPECT_FALSE(values.contains({"0000:1b:00.0", "nvlink_tx_bytes"}));
  EXPECT_FALSE(values.contains({"0000:1b:00.0", "nvlink_replay"}));
  EXPECT_FALSE(values.contains({"0000:1e:00.0", "throttle"}));
}

// As of a fabric that comes up late.
TEST_F(Watched, WhatAnswersLaterIsWatchedFromThenOn) {
  says("links 0\nfield_fail 138 -1 -1 3\nfield_fail 139 -1 -1 3\n");
  WatchedGpus gpus;
  EXPECT_EQ(gpus.size(), 4u * 6);
  says("field 161 0 2 5\n");
  EXPECT_EQ(read(gpus, Pace::kSecond).size(), 4u * 3);
  const Values values = read(gpus, Pace::kTenSeconds);
  EXPECT_EQ(gpus.size(), 4u * 11);
  EXPECT_EQ((values.at({"0000:1b:00.0", "nvlink_replay"})), "5") << "it may rise from its first value";
  EXPECT_EQ((values.at({"0000:1b:00.0", "nvlink_tx_bytes"})), "0");
  EXPECT_FALSE(read(gpus, Pace::kTenSeconds).contains({"0000:1b:00.0", "nvlink_replay"}));
}

TEST_F(Watched, WhatStopsAnsweringIsSaid) {
  WatchedGpus gpus;
  says("fail nvmlDeviceGetClockInfo 0 15\nfail nvmlDeviceGetFieldValues 0 15\n");
  const Values values = read(gpus, Pace::kTenMinutes);
  EXPECT_EQ((values.at({"0000:1b:00.0", "sm_clock_mhz"})), "-");
  EXPECT_EQ((values.at({"0000:1b:00.0", "nvlink_replay"})), "-");
  EXPECT_EQ((values.at({"0000:1c:00.0", "sm_clock_mhz"})), "1980");
}

TEST_F(Watched, LibrariesThatLieOrDoNotStartAreHarmless) {
  says("gpus 4000000000\nlinks 4000000000\n");
  WatchedGpus many;
  EXPECT_EQ(many.size(), 64u * 11);
  std::string flood = "gpus 4000000000\n";
  for (int i = 0; i < 1'000; ++i) flood += "xid " + std::to_string(i % 64) + " " + std::to_string(i) + "\n";
  says(flood);
  for (int second = 0; second < 20; ++second) read(many, Pace::kSecond);
  EXPECT_LE(many.size(), 64u * 11 + 512);
  says("fail nvmlInit_v2 -1 9\n");
  EXPECT_EQ(WatchedGpus().size(), 0u);
  setenv("LOCKSTEP_NVML", "/nowhere/libnvidia-ml.so.1", 1);
  EXPECT_EQ(WatchedGpus().size(), 0u);
}

TEST_F(Watched, AreInTheLogOfAHost) {
  SampleLines lines("");
  const std::string head = lines.head({"node-007", "boot", 1}, 1'770'000'000'000'000'000);
  std::string text = head + lines.sample(0, Pace::kTenMinutes, true);
  says("answer nvmlDeviceGetCurrentClocksThrottleReasons 2 64\nxid 3 79\n");
  text += lines.sample(1000, Pace::kSecond, false);
  text += lines.sample(600'000, Pace::kTenMinutes, false);
  const auto log = parse_sample_log(text, "log");
  ASSERT_TRUE(log) << log.error().message();
  EXPECT_EQ(log->damaged, 0u) << text;
  const auto samples = [&](const std::string& device, const std::string& name) {
    std::string all;
    for (const SampledCounter& counter : log->counters)
      if (counter.key == CounterKey{DeviceKind::kGpu, device, name})
        for (const Sample& sample : counter.samples)
          all += std::to_string(sample.ms) + "=" + std::to_string(sample.value) + " ";
    return all;
  };
  EXPECT_EQ(samples("0000:1d:00.0", "throttle"), "0=0 1000=64 ");
  EXPECT_EQ(samples("0000:1e:00.0", "xid_79"), "1000=1 ");
  EXPECT_EQ(samples("0000:1b:00.0", "nvlink_crc"), "0=0 600000=0 ") << "when it was read matters";
}

TEST_F(Watched, OfAnotherRootAreNotAsked) { EXPECT_TRUE(SampleLines(directory_->path()).is_empty()); }

}  // namespace
}  // namespace lockstep::links::nvidia
