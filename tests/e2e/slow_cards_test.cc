// SPDX-License-Identifier: Apache-2.0
// Simulated jobs with a slow card or path, and counters of every card beside them: the right port is the
// likely cause, a confirmed one with a line of NCCL's log about it, another one is not, quiet ones are said,
// and those of a healthy busy job change nothing. Errors where nothing is slow are possible causes.
// LOCKSTEP_SLOW_CARD_JOBS: how many jobs of each kind.
#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

using nlohmann::json;

constexpr int kPerHost = 8, kHosts = 3;

int jobs_of_a_kind() {
  const char* const set = std::getenv("LOCKSTEP_SLOW_CARD_JOBS");
  return set == nullptr ? 3 : std::atoi(set);
}

struct Card {
  std::string host;
  int number = -1;
  bool operator==(const Card&) const = default;
};

class SlowCards : public Workplace {
 protected:
  // Returns what is true of it.
  json simulate(const std::string& fault, int seed) {
    std::filesystem::remove_all(path("run"));
    const Finished finished =
        do_here({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", std::to_string(kPerHost * kHosts),
                 "--ranks-per-host", std::to_string(kPerHost), "--mode", "deep", "--fault", fault, "--seed",
                 std::to_string(seed), "-o", "run"});
    EXPECT_EQ(finished.code, 0) << finished;
    processes_ = info("run")["process_list"];
    return json::parse(read_file(path("run/truth.json")))["fault"];
  }

  // A log of each host: a busy card below the bridge of each GPU; errors come to one of them.
  void write_counters(const Card& faulty) const {
    std::map<std::string, std::string> heads, counters, starts, ends;
    std::map<std::string, int> counts;
    for (const json& process : processes_) {
      const std::string host = process["host"], gpu = process["pci"];
      const int card = process["rank"].get<int>() % kPerHost;
      const std::string bridge = "pci" + gpu.substr(0, 7) + "/" + gpu.substr(0, 8) + "f0.0/",
                        name = "mlx5_" + std::to_string(card);
      if (!heads.contains(host))
        heads[host] = "lockstep link samples 1\nhost " + host + "\nboot b\npid 1\nstart " +
                      std::to_string(process["first_ns"].get<int64_t>() - 1'000'000'000) + "\n";
      heads[host] += "gpu " + gpu + " " + bridge + gpu + "\ncard " + name + " " + bridge + "0000:e" +
                     std::to_string(card) + ":00.0\n";
      const bool is_faulty = Card{host, card} == faulty;
      for (const auto& [counter, start, end] :
           {std::tuple("state", "4", "4"), std::tuple("symbol_error", "3", is_faulty ? "5003" : "3"),
            std::tuple("link_downed", "1", "1"), std::tuple("port_xmit_data", "1000", "9000000000"),
            std::tuple("port_xmit_wait", "4000000000", "3000000000"),
            std::tuple("out_of_sequence", "5", "600000")}) {
        const std::string number = std::to_string(counts[host]++);
        counters[host] += "counter " + number + " port " + name + "/1 " + counter + "\n";
        starts[host] += " " + number + "=" + start;
        if (std::string_view(start) != end) ends[host] += " " + number + "=" + end;
      }
    }
    for (const auto& [host, head] : heads)
      write_file(path("run/links." + host + ".1.log"), head + counters.at(host) + "at 0" + starts.at(host) +
                                                           "\nat 1400" + ends.at(host) + "\nend\n");
  }

  json diagnose(int code, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"diagnose", "--json", "run"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = do_here(lockstep(words));
    EXPECT_EQ(finished.code, code) << finished;
    return json::parse(finished.out, nullptr, false);
  }
  static std::vector<std::string> cited(const json& finding, const std::string& words) {
    std::vector<std::string> lines;
    for (const std::string line : finding["evidence"])
      if (has(line, words)) lines.push_back(line);
    return lines;
  }
  Card card_of(const json& rank) const {
    for (const json& process : processes_)
      if (process["rank"] == rank) return {process["host"], rank.get<int>() % kPerHost};
    return {};
  }
  static std::string port_of(const Card& card) {
    return "mlx5_" + std::to_string(card.number) + "/1 of " + card.host;
  }
  static size_t from_counters(const json& document) {
    size_t count = 0;
    for (const json& finding : document["findings"]) count += finding["sources"] == json({"link counters"});
    return count;
  }

  json processes_;
};

TEST_F(SlowCards, TheRightPortIsTheLikelyCauseAndNoOther) {
  for (const std::string fault : {"slow-nic", "slow-link"})
    for (int seed = 1; seed <= jobs_of_a_kind(); ++seed) {
      SCOPED_TRACE(fault + ", seed " + std::to_string(seed));
      const json truth = simulate(fault, seed);
      const Card guilty = card_of(truth["ranks"][0]);
      json document = diagnose(1);
      ASSERT_EQ(document["verdict"]["class"], fault);
      ASSERT_EQ(document["verdict"]["ranks"], truth["ranks"]);
      EXPECT_TRUE(cited(document["verdict"], "link counters").empty()) << "none were sampled";
      EXPECT_TRUE(has(document["verdict"]["needed_evidence"].get<std::string>(), "run `ibstat` on "));

      write_counters(guilty);
      document = diagnose(1);
      ASSERT_EQ(document["verdict"]["class"], fault);
      ASSERT_EQ(document["verdict"]["ranks"], truth["ranks"]);
      EXPECT_EQ(document["verdict"]["needed_evidence"], "") << "they were";
      const auto likely = cited(document["verdict"], "likely");
      ASSERT_EQ(likely.size(), 1u) << document["verdict"];
      EXPECT_TRUE(has(likely[0], port_of(guilty) + ": symbols arrive damaged")) << likely[0];
      EXPECT_EQ(from_counters(document), 0u);

      // NCCL's log tells of that port as well; of another one, it confirms nothing.
      for (const int number : {guilty.number, (guilty.number + 3) % kPerHost}) {
        write_file(path("nccl.log"), guilty.host + ":11:22 [" + std::to_string(number) +
                                         "] NCCL WARN NET/IB : mlx5_" + std::to_string(number) +
                                         ":1 Got async event : port error\n");
        std::vector<std::string> confirmed;
        const json with_log = diagnose(1, {"nccl.log"});
        for (const json& finding : with_log["findings"])
          for (const std::string& line : cited(finding, "link counters: confirmed"))
            confirmed.push_back(line);
        EXPECT_EQ(confirmed.empty(), number != guilty.number) << with_log["findings"];
        for (const std::string& line : confirmed) EXPECT_TRUE(has(line, port_of(guilty))) << line;
      }

      const Card other{guilty.host, (guilty.number + 1) % kPerHost};
      write_counters(other);
      document = diagnose(1);
      EXPECT_TRUE(cited(document["verdict"], "likely").empty()) << document["verdict"];
      EXPECT_EQ(cited(document["verdict"], "no error counter rose on the cards nearest").size(), 1u)
          << document["verdict"];
      EXPECT_EQ(from_counters(document), 1u);

      write_counters({});
      document = diagnose(1);
      EXPECT_TRUE(cited(document["verdict"], "likely").empty());
      EXPECT_FALSE(cited(document["verdict"], "no error counter rose").empty()) << document["verdict"];
      EXPECT_EQ(from_counters(document), 0u);
    }
}

TEST_F(SlowCards, CountersOfHealthyBusyCardsAreSilent) {
  for (int seed = 1; seed <= jobs_of_a_kind(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    simulate("none", seed);
    const Finished without = do_here(lockstep({"diagnose", "--json", "run"}));
    write_counters({});
    const Finished with = do_here(lockstep({"diagnose", "--json", "run"}));
    EXPECT_EQ(with.code, without.code);
    EXPECT_EQ(with.out, without.out);
    EXPECT_TRUE(has(do_here(lockstep({"diagnose", "run"})).out, "link counters: 3 hosts, 24 devices, from "));

    // Errors of a card, and nothing that was slow: possible, and of that port alone.
    const Card faulty{processes_[0]["host"], seed % kPerHost};
    write_counters(faulty);
    const json document = diagnose(1);
    ASSERT_EQ(from_counters(document), 1u);
    for (const json& finding : document["findings"]) {
      if (finding["sources"] != json({"link counters"})) continue;
      EXPECT_TRUE(finding["statement"].get<std::string>().starts_with(port_of(faulty) + ": "))
          << finding["statement"];
      EXPECT_EQ(cited(finding, "possible: ").size(), 1u);
    }
  }
}

}  // namespace
}  // namespace lockstep::test
