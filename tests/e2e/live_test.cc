// SPDX-License-Identifier: Apache-2.0
// `diagnose` and `top` on jobs that have ended, that run, and that are stopped; what they leave alone.
#include <memory>

#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

class Live : public Workplace {
 protected:
  std::map<std::string, std::string> captured(int rank, int world) const {
    auto environment = Workplace::rank(rank, world);
    environment["LOCKSTEP_LIBRARY"] = LOCKSTEP_LIB_DIR "/liblockstep.so";
    environment["LOCKSTEP_DIR"] = path("run");
    return environment;
  }
  // Ranks that have done so many operations and wait for the file `go`.
  using Ranks = std::vector<std::unique_ptr<Process>>;
  Ranks waiting(const std::vector<int>& ops) const {
    Ranks ranks;
    int world = static_cast<int>(ops.size());
    for (int i = 0; i < world; ++i) {
      ranks.push_back(std::make_unique<Process>(job({"ops", std::to_string(ops[static_cast<size_t>(i)]),
                                                     "touch", "ready" + std::to_string(i), "await", "go"}),
                                                here(captured(i, world))));
    }
    for (int i = 0; i < world; ++i)
      EXPECT_TRUE(wait_until([&] { return exists("ready" + std::to_string(i)); })) << i;
    return ranks;
  }
  void release(Ranks& ranks) const {
    write_file(path("go"), "");
    for (auto& rank : ranks) EXPECT_EQ(rank->wait().code, 0);
  }
  nlohmann::json diagnosis(const std::vector<std::string>& words) const {
    Argv argv = {"diagnose", "--json"};
    argv.insert(argv.end(), words.begin(), words.end());
    Finished finished = do_here(lockstep(argv));
    EXPECT_TRUE(finished.code == 0 || finished.code == 1 || finished.code == 3) << finished;
    auto document = nlohmann::json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << finished;
    EXPECT_EQ(document["verdict"].is_null(), finished.code == 0) << finished;
    return document;
  }
  std::set<std::string> livenesses(const nlohmann::json& document) const {
    std::set<std::string> all;
    for (const auto& input : document["inputs"]) all.insert(input["liveness"]);
    return all;
  }
};

TEST_F(Live, DiagnosesWithoutTouchingTheJob) {
  Ranks ranks = waiting({9, 9, 8, 9});
  std::map<std::string, std::filesystem::file_time_type> written;
  for (const auto& entry : std::filesystem::directory_iterator(path("run"))) written[entry.path()] = {};
  auto document = diagnosis({"run"});
  for (const char* key : {"verdict", "findings", "losses", "inputs", "clock", "match"})
    EXPECT_TRUE(document.contains(key)) << key;
  EXPECT_EQ(document["inputs"].size(), 4u);
  EXPECT_EQ(livenesses(document), std::set<std::string>{"running"});
  EXPECT_EQ(document["inputs"][2]["ops"], 8);
  EXPECT_EQ(document["inputs"][2]["state"], "not closed");
  EXPECT_EQ(document["match"][0]["comm"], "world");
  EXPECT_EQ(document["match"][0]["matched"], 32);
  EXPECT_EQ(document["clock"].size(), 1u);

  kill(ranks[2]->pid(), SIGSTOP);
  EXPECT_TRUE(wait_until([&] { return diagnosis({"run"})["inputs"][2]["liveness"] == "stopped"; }));
  kill(ranks[2]->pid(), SIGCONT);
  kill(ranks[1]->pid(), SIGKILL);
  EXPECT_EQ(ranks[1]->wait().code, 1000 + SIGKILL);
  EXPECT_EQ(diagnosis({"run"})["inputs"][1]["liveness"], "gone");
  ranks.erase(ranks.begin() + 1);
  release(ranks);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("run")))
    files += written.contains(entry.path());
  EXPECT_EQ(files, written.size()) << "nothing was added or removed";
}

// A job of processes that wait for each other, one of which is stopped: NCCL's way, through the real plugin.
TEST_F(Live, NamesTheStoppedRankOfAJobThatHangs) {
  if (!std::filesystem::exists(LOCKSTEP_BIN_DIR "/lockstep-sim-job")) GTEST_SKIP() << "no simulator";
  Process simulator({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--live", "--ranks", "4", "--steps", "4",
                     "--fault", "never-joined:stopped", "-o", "run"},
                    here());
  EXPECT_TRUE(wait_until([&] {
    if (!exists("run") || do_here(lockstep({"diagnose", "run"})).code == 2) return false;
    auto document = diagnosis({"run"});
    auto& verdict = document["verdict"];
    if (verdict.is_null() || verdict["class"] != "never-joined") return false;
    EXPECT_EQ(verdict["ranks"].size(), 1u) << verdict;
    size_t blamed = verdict["ranks"][0];
    return document["inputs"][blamed]["liveness"] == "stopped";
  }));
  kill(simulator.pid(), SIGTERM);
  simulator.wait();
}

TEST_F(Live, DiagnosesEveryKindOfInput) {
  EXPECT_EQ(do_here(job({"ops", "50"}), captured(0, 1)).code, 0);
  EXPECT_EQ(do_here(lockstep({"merge", "-o", "a.db", "run"})).code, 0);
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(path("run"))) {
    if (entry.path().extension() == ".lks") file = entry.path();
  }
  for (const std::string& input : {std::string("run"), std::string("a.db"), file})
    EXPECT_EQ(diagnosis({input})["inputs"][0]["ops"], 50) << input;
  Finished finished = do_here(lockstep({"diagnose", "run"}));
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out.rfind("No problem found: 1 rank on 1 host, 50 operations", 0), 0u) << finished;
  EXPECT_FALSE(has(finished.out, "\033[")) << "colours are for terminals";
}

TEST_F(Live, UnreadableInputAndWrongUsage) {
  write_file(path("text"), "text");
  std::filesystem::create_directories(path("empty"));
  for (const Argv& words : {Argv{"diagnose", "nowhere"},
                            {"diagnose", "text"},
                            {"diagnose", "empty"},
                            {"diagnose"},
                            {"diagnose", "--watch", "text"},
                            {"diagnose", "--watch=0", "text"},
                            {"diagnose", "--watch=x", "text"},
                            {"top", "--once", "nowhere"},
                            {"top", "--once", "text"},
                            {"top", "--once", "empty"},
                            {"top", "--json", "empty"},
                            {"top", "empty"},
                            {"top"}}) {
    Finished finished = do_here(lockstep(words));
    EXPECT_EQ(finished.code, 2) << words[0] << '\n' << finished;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
  }
}

TEST_F(Live, WatchEndsOnCtrlCWithTheLastVerdict) {
  std::filesystem::create_directories(path("run"));
  Process watch(lockstep({"diagnose", "--json", "--watch=1", "run"}), here());
  Ranks ranks = waiting({5, 5});
  EXPECT_TRUE(watch.await_output("\n"));
  Surroundings terminal = here({{"TERM", "xterm"}});
  terminal.terminal = true;
  Process screen(lockstep({"diagnose", "--watch=1", "run"}), terminal);
  EXPECT_TRUE(screen.await_output("press Ctrl-C to stop"));
  kill(watch.pid(), SIGINT);
  Finished finished = watch.wait();
  EXPECT_TRUE(finished.code == 0 || finished.code == 1 || finished.code == 3) << finished;
  auto first = nlohmann::json::parse(finished.out.substr(0, finished.out.find('\n')), nullptr, false);
  EXPECT_TRUE(first.contains("verdict")) << finished;
  screen.type("\x03");
  finished = screen.wait();
  EXPECT_LT(finished.code, 4) << finished;
  EXPECT_TRUE(has(finished.out, "\033[H")) << finished;
  EXPECT_TRUE(has(finished.out, "press Ctrl-C to stop")) << finished;
  release(ranks);
}

TEST_F(Live, TopNamesTheRankThatOthersWaitFor) {
  Ranks ranks = waiting({9, 9, 8, 9});
  Finished finished;
  EXPECT_TRUE(wait_until([&] {
    finished = do_here(lockstep({"top", "--once", "run"}));
    return finished.code == 1;
  })) << finished;
  EXPECT_EQ(finished.out.rfind("Rank 2 (", 0), 0u) << finished;
  EXPECT_TRUE(has(finished.out, "is 1 operation behind on world: others began allreduce")) << finished;
  EXPECT_TRUE(has(finished.out, "4 ranks, 1 late, 3 waiting")) << finished;
  auto document =
      nlohmann::json::parse(do_here(lockstep({"top", "--once", "--json", "run"})).out, nullptr, false);
  ASSERT_EQ(document["ranks"].size(), 4u);
  EXPECT_EQ(document["ranks"][2]["state"], "late");
  EXPECT_EQ(document["ranks"][2]["behind"], 1);
  EXPECT_EQ(document["ranks"][0]["last"]["number"], 8);
  release(ranks);
  finished = do_here(lockstep({"top", "--once", "run"}));
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_EQ(finished.out.rfind("All 4 processes ended normally.", 0), 0u) << finished;
}

TEST_F(Live, TopLeavesTheTerminalAsItWas) {
#ifndef LOCKSTEP_LIVE_VIEW
  GTEST_SKIP() << "built without ncurses";
#endif
  Ranks ranks = waiting({9, 9});
  for (const char* end : {"q", "\x03", "SIGTERM"}) {
    Surroundings around = here({{"TERM", "xterm"}, {"LINES", "24"}, {"COLUMNS", "100"}});
    around.terminal = true;
    Process top(lockstep({"top", "run"}), around);
    EXPECT_TRUE(top.await_output("allreduce"));
    if (end == std::string("SIGTERM"))
      kill(top.pid(), SIGTERM);
    else
      top.type(end);
    Finished finished = top.wait();
    EXPECT_EQ(finished.code, 0) << end << finished;
    size_t enter = finished.out.find("\033[?1049h"), leave = finished.out.rfind("\033[?1049l");
    EXPECT_NE(enter, std::string::npos) << end << finished;
    EXPECT_NE(leave, std::string::npos) << end << finished;
    EXPECT_LT(enter, leave);
  }
  release(ranks);
}

}  // namespace
}  // namespace lockstep::test
