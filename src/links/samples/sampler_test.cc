// SPDX-License-Identifier: Apache-2.0
#include "links/samples/sampler.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/temporary_directory.h"
#include "links/judge/samples.h"
#include "links/samples/host_lock.h"
#include "links/samples/sample_log.h"
#include "links/testing/planted_tree.h"

namespace lockstep::links {
namespace {

namespace fs = std::filesystem;
using testing::interface_file;
using testing::PlantedTree;
using testing::port_file;

const SampleIdentity kWho{"node-007", "0b6d4b1e", 4711};
constexpr int64_t kStartNs = 1'770'000'000'000'000'000;

class LinkSamples : public ::testing::Test {
 protected:
  PlantedTree tree_;

  // The number of a counter as it stands in lines; -1: it is not sampled.
  static int number(const std::string& head, const std::string& device, const std::string& name) {
    const size_t at = head.find(" " + device + " " + name + "\n");
    if (at == std::string::npos) return -1;
    const size_t line = head.rfind("counter ", at) + 8;
    return std::stoi(head.substr(line));
  }
  static bool has(const std::string& line, int number, const std::string& value) {
    return (line.substr(0, line.size() - 1) + " ").find(" " + std::to_string(number) + "=" + value + " ") !=
           std::string::npos;
  }
};

TEST_F(LinkSamples, SayEachCounterOnceAndThenWhatChanges) {
  SampleLines lines(tree_.root());
  const std::string head = lines.head(kWho, kStartNs);
  const int downed = number(head, "mlx5_3/1", "link_downed"),
            data = number(head, "mlx5_3/1", "port_xmit_data"), state = number(head, "mlx5_3/1", "state"),
            rate = number(head, "mlx5_3/1", "rate"), carrier = number(head, "ib3", "carrier_changes");
  const std::string first = lines.sample(0, Pace::kTenMinutes, true);
  EXPECT_TRUE(has(first, downed, "0") && has(first, state, "4") && has(first, rate, "400000") &&
              has(first, carrier, "2"))
      << first;
  EXPECT_EQ(lines.sample(1000, Pace::kSecond, false), "");
  tree_.write(port_file(3, "counters/link_downed"), "1");
  tree_.write(port_file(3, "counters/port_xmit_data"), "77");
  tree_.write(port_file(3, "state"), "1: DOWN");
  EXPECT_EQ(lines.sample(2000, Pace::kSecond, false),
            "at 2000 " + std::to_string(state) + "=1 " + std::to_string(downed) + "=1\n");
  EXPECT_EQ(lines.sample(3000, Pace::kTenMinutes, false), "at 3000 " + std::to_string(data) + "=77\n");
  EXPECT_EQ(lines.sample(4000, Pace::kSecond, true), "at 4000\n");
}

TEST_F(LinkSamples, HoldErrorsOfPcieOfCardsAndOfThePortsAboveThem) {
  SampleLines lines(tree_.root());
  const std::string head = lines.head(kWho, kStartNs);
  size_t devices = 0;
  for (size_t at = head.find(" aer_fatal\n"); at != std::string::npos; at = head.find(" aer_fatal\n", at + 1))
    ++devices;
  EXPECT_EQ(devices, 32u);  // 8 GPUs, 8 cards, and a port of a switch above each
  EXPECT_NE(head.find("\ncard mlx5_0 pci0000:10/"), std::string::npos) << head;
  EXPECT_NE(head.find("\ngpu 0000:"), std::string::npos);
}

TEST_F(LinkSamples, HoldErrorsOfXgmiAndPcieOfAmdsGpus) {
  std::string gpu;
  for (const auto& entry : fs::directory_iterator(tree_.root() + "/sys/bus/pci/devices")) {
    const std::string name = entry.path().filename();
    std::string text;
    std::getline(std::ifstream(entry.path() / "class"), text);
    if (text.starts_with("0x0302") && (gpu.empty() || name < gpu)) gpu = name;
  }
  ASSERT_FALSE(gpu.empty());
  const std::string folder = "/sys/bus/pci/devices/" + gpu;
  tree_.write(folder + "/ras/xgmi_wafl_err_count", "ue: 0\nce: 3");
  tree_.write(folder + "/ras/pcie_bif_err_count", "disabled");
  tree_.write(folder + "/pcie_replay_count", "7");
  SampleLines lines(tree_.root());
  const std::string head = lines.head(kWho, kStartNs), first = lines.sample(0, Pace::kTenMinutes, true);
  const auto of = [&](const char* name) { return number(head, gpu, name); };
  EXPECT_TRUE(has(first, of("xgmi_uncorrected"), "0") && has(first, of("xgmi_corrected"), "3") &&
              has(first, of("pcie_replay"), "7") && has(first, of("pcie_uncorrected"), "-"))
      << head << first;
  tree_.write(folder + "/ras/xgmi_wafl_err_count", "ue: 2\nce: 3");
  const std::string next = lines.sample(10'000, Pace::kTenSeconds, true);
  const auto log = parse_sample_log(head + first + next, "log");
  ASSERT_TRUE(log);
  const std::vector<HostSamples> hosts = judge_samples({*log});
  ASSERT_EQ(hosts.size(), 1u);
  ASSERT_EQ(hosts[0].troubles.size(), 1u);
  EXPECT_EQ(id_text(hosts[0].troubles[0].id), "transport-error.xgmi");
  EXPECT_EQ(hosts[0].troubles[0].device, gpu);
}

TEST_F(LinkSamples, WhatCannotBeReadIsSaidAndTriedAgain) {
  tree_.make_unreadable(port_file(1, "counters/symbol_error"));
  ASSERT_EQ(fs::remove(tree_.root() + port_file(1, "counters/port_rcv_errors")), true);
  ASSERT_EQ(mkfifo((tree_.root() + port_file(1, "counters/port_rcv_errors")).c_str(), 0600), 0);
  tree_.write(port_file(1, "counters/link_downed"), "N/A (no PMA)");
  SampleLines lines(tree_.root());
  const std::string head = lines.head(kWho, kStartNs), first = lines.sample(0, Pace::kTenMinutes, true);
  for (const char* const name : {"symbol_error", "port_rcv_errors", "link_downed"})
    EXPECT_TRUE(has(first, number(head, "mlx5_1/1", name), "-")) << name << ": " << first;
  tree_.remove(port_file(1, "counters/symbol_error"));
  tree_.write(port_file(1, "counters/symbol_error"), "5");
  EXPECT_TRUE(has(lines.sample(1000, Pace::kSecond, false), number(head, "mlx5_1/1", "symbol_error"), "5"));
}

TEST_F(LinkSamples, APortThatVanishesAndComesBack) {
  SampleLines lines(tree_.root());
  const std::string head = lines.head(kWho, kStartNs);
  lines.sample(0, Pace::kTenMinutes, true);
  tree_.remove("/sys/class/infiniband/mlx5_2/ports");
  EXPECT_TRUE(has(lines.sample(1000, Pace::kSecond, false), number(head, "mlx5_2/1", "state"), "-"));
  EXPECT_EQ(lines.sample(2000, Pace::kSecond, false), "");
  tree_.write(port_file(2, "state"), "4: ACTIVE");
  EXPECT_TRUE(has(lines.sample(3000, Pace::kSecond, false), number(head, "mlx5_2/1", "state"), "4"));
}

TEST_F(LinkSamples, HostileTreesAreHarmless) {
  tree_.write("/sys/class/infiniband/with blanks/ports/1/state", "4: ACTIVE");
  tree_.write("/sys/class/infiniband/line\nbreak/ports/1/state", "4: ACTIVE");
  tree_.write(port_file(0, "counters/symbol_error"), std::string(1 << 20, '9'));
  tree_.write(port_file(0, "counters/link_downed"), std::string("\0\xff", 2));
  tree_.write(port_file(0, "rate"), "1e300 Gb/sec");
  tree_.write(port_file(4, "rate"), "nan Gb/sec");
  fs::create_symlink("loop", tree_.root() + "/sys/class/infiniband/loop");
  fs::create_symlink("/dev/zero", tree_.root() + port_file(5, "counters/excessive_buffer_overrun_errors"));
  SampleLines lines(tree_.root());
  const std::string head = lines.head(kWho, kStartNs), first = lines.sample(0, Pace::kTenMinutes, true);
  const auto log = parse_sample_log(head + first, "log");
  ASSERT_TRUE(log) << log.error().message();
  EXPECT_EQ(log->damaged, 0u);
  for (const char* const name : {"symbol_error", "link_downed", "rate"})
    EXPECT_TRUE(has(first, number(head, "mlx5_0/1", name), "-")) << name;
  EXPECT_TRUE(has(first, number(head, "mlx5_4/1", "rate"), "-"));
  EXPECT_TRUE(has(first, number(head, "mlx5_5/1", "excessive_buffer_overrun_errors"), "-"));
  EXPECT_EQ(head.find("blanks"), std::string::npos);
  EXPECT_EQ(head.find("break"), std::string::npos);
}

TEST_F(LinkSamples, TheSamplerLeavesAWholeLog) {
  const std::string log = tree_.root() + "/links.log", lock = tree_.root() + "/links.lock";
  Sampler sampler({tree_.root(), log, lock, {}}, kWho);
  sampler.stop();
  const auto read = read_sample_log(log);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_TRUE(read->has_ended);
  EXPECT_EQ(read->host, "node-007");
  EXPECT_EQ(read->pid, 4711);
  EXPECT_EQ(read->damaged, 0u);
  EXPECT_GT(read->start_ns, kStartNs);
  for (const SampledCounter& counter : read->counters)
    EXPECT_EQ(counter.samples.size(), 1u) << counter.key.name;
}

TEST_F(LinkSamples, OneSamplerOfAHostWritesAtATime) {
  const std::string lock = tree_.root() + "/links.lock";
  const auto log = [&](const char* name) { return tree_.root() + "/" + name; };
  {
    Sampler first({tree_.root(), log("a"), lock, {}}, kWho);
    while (!fs::exists(log("a"))) std::this_thread::yield();
    Sampler second({tree_.root(), log("b"), lock, {}}, kWho);
    second.stop();
    EXPECT_FALSE(fs::exists(log("b")));
  }
  Sampler third({tree_.root(), log("c"), lock, {}}, kWho);
  third.stop();
  EXPECT_TRUE(fs::exists(log("c")));
}

TEST_F(LinkSamples, WhoWatchesHasChangesOfAMomentApart) {
  const std::string log = tree_.root() + "/links.log", watch = tree_.root() + "/links.watch.lock";
  const HostLock watching(watch);
  ASSERT_EQ(watching.take(), HostLock::Taken::kYes);
  Sampler sampler({tree_.root(), log, tree_.root() + "/links.lock", watch}, kWho);
  constexpr size_t kChanges = 6;
  std::vector<Sample> samples;
  for (uint64_t i = 1; i <= kChanges; ++i) {
    tree_.write(port_file(3, "counters/port_rcv_errors"), std::to_string(i));
    do {
      std::this_thread::yield();
      const auto read = read_sample_log(log);
      if (!read) continue;
      for (const SampledCounter& counter : read->counters)
        if (counter.key == CounterKey{DeviceKind::kPort, "mlx5_3/1", "port_rcv_errors"})
          samples = counter.samples;
    } while (samples.empty() || samples.back().value != i);
  }
  // Once a second they would span more than five.
  EXPECT_LT(samples.back().ms - samples.front().ms, 4000);
}

TEST(HostLock, IsHeldByWhoTookItWhileThatOneIsThere) {
  const auto folder = TemporaryDirectory::make();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/lock";
  EXPECT_FALSE(HostLock::is_held(path));
  EXPECT_FALSE(fs::exists(path)) << "asking makes no file";
  {
    const HostLock lock(path), another(path);
    EXPECT_FALSE(HostLock::is_held(path)) << "nobody has taken it";
    EXPECT_EQ(lock.take(), HostLock::Taken::kYes);
    EXPECT_EQ(lock.take(), HostLock::Taken::kYes);
    EXPECT_EQ(another.take(), HostLock::Taken::kByAnother);
    EXPECT_TRUE(HostLock::is_held(path));
  }
  EXPECT_FALSE(HostLock::is_held(path));
  EXPECT_EQ(HostLock(folder->path() + "/nowhere/lock").take(), HostLock::Taken::kImpossible);
}

TEST_F(LinkSamples, WhereNothingCanBeSampledNothingIsLeft) {
  const std::string log = tree_.root() + "/links.log", lock = tree_.root() + "/links.lock";
  for (const std::string& root : {tree_.root() + "/nowhere", tree_.root() + "/proc"}) {
    Sampler sampler({root, log, lock, {}}, kWho);
    sampler.stop();
    EXPECT_FALSE(fs::exists(log));
  }
  Sampler sampler(
      {tree_.root(), tree_.root() + "/nowhere/links.log", tree_.root() + "/nowhere/links.lock", {}}, kWho);
  sampler.stop();
  EXPECT_FALSE(fs::exists(tree_.root() + "/nowhere"));
}

SampleLog parsed(const std::string& text) {
  auto log = parse_sample_log("lockstep link samples 1\nhost h\nboot b\nstart 1000000000000\n" + text, "log");
  EXPECT_TRUE(log);
  return log ? *std::move(log) : SampleLog();
}

TEST(SampleLog, ALineCountsOnceItHasEnded) {
  const SampleLog log = parsed("counter 0 port a/1 symbol_error\nat 0 0=4\nat 1000 0=45");
  EXPECT_EQ(log.counters[0].samples.size(), 1u);
  EXPECT_EQ(log.last_ms, 0);
  EXPECT_EQ(log.damaged, 0u);
  EXPECT_FALSE(log.has_ended);
}

TEST(SampleLog, WhatIsDamagedIsCountedAndPassedOver) {
  const SampleLog log = parsed(
      "counter 0 port a/1 symbol_error\ncounter 2 port a/1 late\ncounter 1 disk a x\ncounter 1 port\nat 5 0=1 7=1 0=x "
      "=\nat 4 0=9\nat -1\nat 99999999999999999999\nat\n\n\x01\x02\nfuture words\npid x\nstart -5\nat 6 "
      "0=99999999999999999999\nat 7 0=18446744073709551615\n");
  EXPECT_EQ(log.damaged, 12u);
  ASSERT_EQ(log.counters.size(), 1u);
  ASSERT_EQ(log.counters[0].samples.size(), 2u);
  EXPECT_EQ(log.counters[0].samples[1].value, UINT64_MAX);
  EXPECT_EQ(log.last_ms, 7);
}

TEST(SampleLog, OtherFilesAndNewerVersionsAreRefused) {
  EXPECT_FALSE(parse_sample_log("", "x"));
  EXPECT_FALSE(parse_sample_log("lockstep link samples 1", "x"));
  EXPECT_FALSE(parse_sample_log("lockstep link samples one\n", "x"));
  EXPECT_FALSE(parse_sample_log(std::string(1 << 20, '\0'), "x"));
  const auto newer = parse_sample_log("lockstep link samples 3\n", "x");
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message().find("version 3"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::links
