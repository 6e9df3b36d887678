// SPDX-License-Identifier: Apache-2.0
// Eight recorded ranks through the real plugin, the launcher, the merge and the tools: every event of the
// tapes arrives.
#include <zlib.h>

#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

constexpr const char* kTapes = LOCKSTEP_SOURCE_DIR "/examples/recordings/train2h";
constexpr const char* kKinds[] = {"Group",     "Coll",         "P2p",       "ProxyOp",  "ProxyStep",
                                  "ProxyCtrl", "KernelCh",     "NetPlugin", "GroupApi", "CollApi",
                                  "P2pApi",    "KernelLaunch", "CeColl",    "CeSync",   "CeBatch"};

std::string gunzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  std::string text;
  char buffer[65536];
  for (int got = 0; file != nullptr && (got = gzread(file, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  if (file != nullptr) gzclose(file);
  return text;
}

struct Recorded {
  std::map<std::string, uint64_t> events;
  std::set<std::string> comms;
  void add(const std::string& tape) {
    for (size_t at = 0; at < tape.size();) {
      size_t end = std::min(tape.find('\n', at), tape.size());
      auto line = nlohmann::json::parse(tape.substr(at, end - at), nullptr, false);
      at = end + 1;
      if (!line.is_object()) continue;
      if (line["call"] == "init") comms.insert(line["commId"]);
      if (line["call"] != "start") continue;
      for (size_t bit = 0; bit < std::size(kKinds); ++bit) {
        if (line["type"] == uint64_t{1} << bit) ++events[kKinds[bit]];
      }
    }
  }
};

class Replay : public Workplace {
 protected:
  Finished replay(Argv options) const {
    options.insert(options.begin(), "trace");
    for (const char* word : {"--", LOCKSTEP_SOURCE_DIR "/tools/replay", "--host",
                             LOCKSTEP_BIN_DIR "/lockstep-nccl-host", kTapes}) {
      options.push_back(word);
    }
    return do_here(lockstep(options));
  }
  static uint64_t lost_in_capture(const nlohmann::json& document) {
    uint64_t lost = 0;
    for (const auto& loss : document["losses"])
      lost += loss["kind"] == "no_chunk" ? loss["count"].get<uint64_t>() : 0;
    return lost;
  }
};

TEST_F(Replay, EveryEventOfEveryRankArrives) {
  Recorded recorded;
  for (int rank = 0; rank < 8; ++rank)
    recorded.add(gunzip(std::string(kTapes) + "/rank" + std::to_string(rank) + ".jsonl.gz"));
  ASSERT_GT(recorded.events["ProxyStep"], 1000u);
  Finished finished = replay({"-m", "deep", "-o", "t.db", "--dir", "run", "--timeline", "t.json.gz"});
  ASSERT_EQ(finished.code, 0) << finished;
  for (const char* input : {"run", "t.db"}) {
    auto document = info(input);
    EXPECT_EQ(document["processes"], 8) << finished;
    EXPECT_EQ(document["comms"], recorded.comms.size());
    EXPECT_EQ(lost_in_capture(document), 0u) << document["losses"];
    for (const char* kind : kKinds)
      EXPECT_EQ(document["events"][kind], recorded.events[kind]) << kind << " in " << input;
    EXPECT_EQ(document["ops"], recorded.events["Coll"] + recorded.events["P2p"]);
  }
  EXPECT_TRUE(has(gunzip(path("t.json.gz")), "traceEvents"));
  Finished summary = do_here(lockstep({"summary", "--json", "t.db"}));
  auto document = nlohmann::json::parse(summary.out, nullptr, false);
  ASSERT_TRUE(document.is_object()) << summary;
  EXPECT_EQ(document["rank_list"].size(), 8u);
  for (const auto& comm : document["comm_list"]) EXPECT_EQ(comm["missing"], "none") << comm;
}

// Events of a tree, those that are folded too.
void count_events(const nlohmann::json& events, std::map<std::string, uint64_t>& counted) {
  for (const auto& event : events) {
    counted[event["event"]] += event["count"].get<uint64_t>();
    count_events(event["children"], counted);
  }
}

TEST_F(Replay, ShowPutsEveryEventOfTheOperationsInItsPlace) {
  ASSERT_EQ(replay({"-m", "deep", "-o", "t.db", "--dir", "run"}).code, 0);
  Finished list = do_here(lockstep({"show", "--json", "t.db"}));
  auto listed = nlohmann::json::parse(list.out, nullptr, false);
  ASSERT_TRUE(listed.is_object()) << list;
  std::map<std::string, uint64_t> collectives, counted;
  for (const auto& op : listed["op_list"]) ++collectives[op["comm"]["id"]];
  ASSERT_EQ(collectives.size(), 7u);
  uint64_t ranks = 0;
  for (const auto& [comm, ops] : collectives) {
    for (uint64_t op = 0; op < ops; op += 4) {
      Finished shown =
          do_here(lockstep({"show", "--json", "t.db", "--comm", comm, "--op", std::to_string(op)}));
      auto document = nlohmann::json::parse(shown.out, nullptr, false);
      ASSERT_TRUE(document.is_object()) << shown;
      for (const auto& rank : document["rank_list"]) {
        EXPECT_EQ(rank["called"], true);
        ++ranks;
        count_events(rank["event_list"], counted);
      }
      Finished whole =
          do_here(lockstep({"show", "--json", "--all", "t.db", "--comm", comm, "--op", std::to_string(op)}));
      std::map<std::string, uint64_t> folded, one_by_one;
      for (const auto& rank : document["rank_list"]) count_events(rank["event_list"], folded);
      auto unfolded = nlohmann::json::parse(whole.out, nullptr, false);
      ASSERT_TRUE(unfolded.is_object()) << whole;
      for (const auto& rank : unfolded["rank_list"]) count_events(rank["event_list"], one_by_one);
      EXPECT_EQ(folded, one_by_one) << comm << " " << op;
    }
  }
  EXPECT_GT(ranks, 100u);
  for (const char* once : {"GroupApi", "CollApi", "KernelLaunch", "Group", "Coll"})
    EXPECT_EQ(counted[once], ranks) << once;
  EXPECT_GE(counted["KernelCh"], ranks);
  EXPECT_GT(counted["ProxyStep"], counted["ProxyOp"]);
  Finished text = do_here(lockstep({"show", "run", "--comm", "0x81835c1f57f8f067", "--op", "0"}));
  EXPECT_EQ(text.code, 0) << text;
  EXPECT_TRUE(has(text.out, "8 of 8 ranks called it, on 2 hosts")) << text;
  Finished drawn = do_here(
      {"bash", "-c",
       LOCKSTEP_BIN_DIR "/lockstep show t.db --json --comm 0x81835c1f57f8f067 --op 5 | " LOCKSTEP_SOURCE_DIR
                        "/tools/swim_lanes 0"});
  EXPECT_EQ(drawn.code, 0) << drawn;
  for (const char* line : {"sequenceDiagram\n", "C->>G: KernelLaunch", "G-->>P: KernelCh", "N->>P: ProxyStep",
                           "P->>N: ProxyStep"})
    EXPECT_TRUE(has(drawn.out, line)) << line << drawn;
  Finished states =
      do_here({"bash", "-c",
               LOCKSTEP_BIN_DIR
               "/lockstep show t.db --json --all --comm 0x81835c1f57f8f067 --op 5 | " LOCKSTEP_SOURCE_DIR
               "/tools/swim_lanes --states 0"});
  EXPECT_EQ(states.code, 0) << states;
  for (const char* line : {"C->>C: GroupApi: group start done\n", "C->>C: Coll stops\n",
                           "P->>P: ProxyStep send: waits for the GPU\n", "P->>P: ProxyStep receive: posted\n",
                           "P->>P: ProxyOp send stops\n", "P->>P: KernelCh stops\n"})
    EXPECT_TRUE(has(states.out, line)) << line << states;
}

TEST_F(Replay, ShowSaysWhatThereIs) {
  ASSERT_EQ(replay({"-m", "lite", "-o", "t.db"}).code, 0);
  for (Argv wrong : {Argv{"--op", "0"},
                     {"--op", "1000000"},
                     {"--op", "some"},
                     {"--op", "0", "--comm", "none"},
                     {"--op", "0", "--rank", "x"},
                     {"--rank", "0"}}) {
    wrong.insert(wrong.begin(), {"show", "t.db"});
    Finished finished = do_here(lockstep(wrong));
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_EQ(finished.out, "") << finished;
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
  }
}

TEST_F(Replay, LiteLeavesOutTheGpuAndTheNetwork) {
  Finished finished = replay({"-m", "lite", "-o", "t.db"});
  ASSERT_EQ(finished.code, 0) << finished;
  auto document = info("t.db");
  EXPECT_GT(document["events"]["Coll"], 0);
  for (const char* kind : {"KernelCh", "ProxyOp", "ProxyStep"})
    EXPECT_EQ(document["events"][kind], 0) << kind;
  EXPECT_FALSE(exists("t.run")) << finished;
}

}  // namespace
}  // namespace lockstep::test
