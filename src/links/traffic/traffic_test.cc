// SPDX-License-Identifier: Apache-2.0
#include "links/traffic/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "links/judge/judge.h"
#include "links/testing/healthy_machine.h"

namespace lockstep::links {
namespace {

// GPUs whose links have set rates. Transfers that start together share a hop's rate.
class ScriptedGpus : public GpuRuntime {
 public:
  explicit ScriptedGpus(int count) {
    for (int gpu = 0; gpu < count; ++gpu) addresses_.push_back(testing::gpu_address(gpu));
  }
  std::map<std::pair<int, int>, double> rates;    // GB/s of a pair, where it is not 390
  std::map<std::pair<int, int>, int> slow_times;  // the pair is slow only so often
  std::set<std::pair<int, int>> unreachable, broken;
  std::set<int> one_hop;  // GPUs that reach all others through one hop of 780 GB/s
  int calls = 0;

  int count() const override { return static_cast<int>(addresses_.size()); }
  const std::string& pci(int gpu) const override { return addresses_[static_cast<size_t>(gpu)]; }
  bool has_kernels() const override { return true; }
  Result<bool> reaches(int by, int other) override { return !unreachable.contains({by, other}); }
  Result<double> load_latency(int, int) override { return 850.0; }
  Result<std::vector<double>> time(std::span<const Transfer> transfers) override {
    ++calls;
    std::vector<double> seconds;
    int in_hop = 0;
    for (const Transfer& transfer : transfers) in_hop += one_hop.contains(transfer.from.gpu) ? 1 : 0;
    for (const Transfer& transfer : transfers) {
      const std::pair pair(transfer.from.gpu, transfer.to.gpu);
      if (broken.contains(pair)) return Error{ErrorCode::kIo, "a transfer did not finish within 20 s", ""};
      double rate = pair.first < 0 || pair.second < 0 ? 55 : 390;
      if (const auto found = rates.find(pair); found != rates.end()) rate = found->second;
      if (const auto found = slow_times.find(pair); found != slow_times.end() && found->second-- > 0)
        rate = 100;
      if (one_hop.contains(pair.first) && pair.second >= 0) rate = std::min(rate, 780.0 / in_hop);
      seconds.push_back(static_cast<double>(transfer.bytes) * transfer.repeats / rate / 1e9);
    }
    return seconds;
  }

 private:
  std::vector<std::string> addresses_;
};

LinksRecord measured(ScriptedGpus& gpus) {
  LinksRecord record = testing::healthy_record();
  record.traffic = *measure(gpus, machine_of(record.before.files, record.before.gpus), {});
  return record;
}

std::vector<std::string> troubles(const LinksRecord& record) {
  std::vector<std::string> found;
  for (const analysis::Finding& finding : judge(record, nullptr))
    if (finding.severity != analysis::Severity::kNote)
      found.push_back(std::string(id_text(finding.id)) + ": " + finding.statement);
  return found;
}

TEST(Tournament, EveryPairMeetsOnce) {
  for (int n = 2; n <= 17; ++n) {
    std::set<std::pair<int, int>> met;
    for (const auto& round : tournament(n)) {
      std::set<int> busy;
      for (const auto& [a, b] : round) {
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second);
        EXPECT_TRUE(met.insert({a, b}).second);
      }
    }
    EXPECT_EQ(met.size(), static_cast<size_t>(n * (n - 1) / 2));
  }
}

TEST(LinksTraffic, HealthyGpusHaveNoTrouble) {
  ScriptedGpus gpus(8);
  const LinksRecord record = measured(gpus);
  EXPECT_TRUE(troubles(record).empty());
  size_t writes = 0;
  for (const Cell& cell : record.traffic->cells) writes += cell.kind == CellKind::kWrite ? 1 : 0;
  EXPECT_EQ(writes, 56u);
}

TEST(LinksTraffic, NamesThePairThatIsSlow) {
  ScriptedGpus gpus(8);
  gpus.rates[{3, 6}] = 150;
  const auto found = troubles(measured(gpus));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("GPU 3 to GPU 6 moves 150"), std::string::npos) << found[0];
}

TEST(LinksTraffic, OfTwoGpusTheSlowDirectionIsNamed) {
  ScriptedGpus gpus(2);
  gpus.rates[{1, 0}] = 150;
  const auto found = troubles(measured(gpus));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("GPU 1 to GPU 0"), std::string::npos) << found[0];
}

TEST(LinksTraffic, MeasuresAgainWhatStoodOut) {
  ScriptedGpus gpus(8);
  gpus.slow_times[{3, 6}] = 4;  // the warm-up and three samples
  EXPECT_TRUE(troubles(measured(gpus)).empty());
}

TEST(LinksTraffic, NamesASharedHop) {
  ScriptedGpus gpus(8);
  gpus.one_hop = {0, 1, 2, 3};
  const auto found = troubles(measured(gpus));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("slow-link.shared-hop")) << found[0];
}

TEST(LinksTraffic, APairThatDoesNotFinishIsSaid) {
  ScriptedGpus gpus(4);
  gpus.broken.insert({0, 2});
  const LinksRecord record = measured(gpus);
  EXPECT_FALSE(record.traffic->notes.empty());
}

TEST(LinksTraffic, WithoutPeerAccessNoLatencyIsMeasured) {
  ScriptedGpus gpus(2);
  gpus.unreachable = {{0, 1}, {1, 0}};
  const LinksRecord record = measured(gpus);
  for (const Cell& cell : record.traffic->cells) EXPECT_NE(cell.kind, CellKind::kLatency);
}

}  // namespace
}  // namespace lockstep::links
