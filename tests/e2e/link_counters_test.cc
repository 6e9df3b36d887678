// SPDX-License-Identifier: Apache-2.0
// `lockstep trace` reads the counters of the host's links beside the job, and `lockstep diagnose` judges
// them; the job is as without.
#include <sys/stat.h>

#include <chrono>
#include <sstream>

#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

class LinkCounters : public Workplace {
 protected:
  const std::string port_ = "root/sys/class/infiniband/mlx5_0/ports/1/";

  void SetUp() override {
    put("state", "4: ACTIVE");
    put("rate", "400 Gb/sec (4X NDR)");
    for (const char* const name :
         {"link_downed", "symbol_error", "port_xmit_data", "port_rcv_data", "port_xmit_wait"})
      put(std::string("counters/") + name, "0");
  }
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(port_ + file)).parent_path());
    write_file(path(port_ + file), text + "\n");
  }
  // A job in which something happens once the first sample is there.
  Argv traced(const std::string& happens, Argv options = {}) const {
    options.insert(options.begin(), {"trace", "--sysfs-root", "root", "-o", "t.db", "--dir", "run"});
    for (
        const std::string& word :
        {std::string("--"), std::string("sh"), std::string("-c"),
         "for i in $(seq 400); do grep -qs '^at' \"$LOCKSTEP_DIR\"/links.*.log && break; sleep 0.05; done; " +
             happens + "; exec " LOCKSTEP_E2E_JOB " ops 20 exit 0"})
      options.push_back(word);
    return lockstep(std::move(options));
  }
  std::string moves_data() const {
    return "echo 900000000 > " + port_ + "counters/port_xmit_data; echo 3000000000 > " + port_ +
           "counters/port_xmit_wait";
  }
  std::vector<std::string> logs() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path("run")))
      if (const std::string name = entry.path().filename();
          name.starts_with("links.") && name.ends_with(".log"))
        found.push_back(name);
    return found;
  }
};

TEST_F(LinkCounters, APortThatWentDownIsAFindingOfTheRunAndOfItsDatabase) {
  const Finished finished = do_here(traced("echo 1 > " + port_ + "counters/link_downed; " + moves_data()));
  ASSERT_EQ(finished.code, 0) << finished;
  ASSERT_EQ(logs().size(), 1u);
  nlohmann::json found[2];
  for (const int of : {0, 1}) {
    const Finished diagnosed = do_here(lockstep({"diagnose", "--json", of == 0 ? "run" : "t.db"}));
    EXPECT_EQ(diagnosed.code, 1) << diagnosed;
    const auto document = nlohmann::json::parse(diagnosed.out, nullptr, false);
    ASSERT_TRUE(document.is_object()) << diagnosed;
    found[of] = document["findings"];
    for (auto& finding : found[of]) finding.erase("next");  // commands that name the input
    EXPECT_EQ(document["verdict"]["id"], "transport-error.link-flapped") << diagnosed;
    EXPECT_TRUE(has(document["verdict"]["statement"], "mlx5_0/1 of ")) << diagnosed;
  }
  EXPECT_EQ(found[0], found[1]);
  const Finished alone = do_here(lockstep({"diagnose", "run/" + logs()[0]}));
  EXPECT_EQ(alone.code, 1) << alone;
}

TEST_F(LinkCounters, AreSampledBesideARunThatNoLauncherStarted) {
  const Finished finished = do_here(
      {"sh", "-c",
       LOCKSTEP_BIN_DIR "/lockstep counters --sysfs-root root run & sampler=$!; mkdir run; "
                        "for i in $(seq 400); do grep -qs '^at' run/links.*.log && break; sleep 0.05; done; "
                        "echo 1 > " +
           port_ + "counters/link_downed; " + moves_data() + "; kill -TERM $sampler; wait $sampler"});
  EXPECT_EQ(finished.code, 0) << finished;
  // Either is the quicker: where the sampler is, it waits for the run.
  EXPECT_TRUE(finished.err.ends_with("lockstep: counters of this host's links and GPUs go into run\n"))
      << finished;
  ASSERT_EQ(logs().size(), 1u);
  EXPECT_TRUE(read_file(path("run/" + logs()[0])).ends_with("\nend\n"));
  const Finished diagnosed = do_here(lockstep({"diagnose", "run/" + logs()[0]}));
  EXPECT_EQ(diagnosed.code, 1) << diagnosed;
  EXPECT_TRUE(has(diagnosed.out, "the link went down and came back")) << diagnosed;
}

TEST_F(LinkCounters, WhoWatchesHasChangesOfAMomentApart) {
  std::filesystem::create_directory(path("run"));
  const Finished finished = do_here(
      {"sh", "-c",
       LOCKSTEP_BIN_DIR "/lockstep counters --watch --sysfs-root root run & sampler=$!; "
                        "for i in 1 2 3 4 5 6; do echo $i > " +
           port_ +
           "counters/symbol_error; for j in $(seq 4000); do grep -qs \"^at.*=$i\" run/links.*.log && break; "
           "sleep 0.01; done; done; kill -TERM $sampler; wait $sampler; "
           // Milliseconds from the first sample to the last change.
           "sed -n 's/^at \\([0-9]*\\) .*=6$/\\1/p' run/links.*.log"});
  EXPECT_EQ(finished.code, 0) << finished;
  int last = 0;
  ASSERT_TRUE(std::istringstream(finished.out) >> last) << finished;
  // Once a second they would span more than five.
  EXPECT_LT(last, 4000) << finished;
}

TEST_F(LinkCounters, WithNothingToSampleTheSamplerSaysSo) {
  std::filesystem::create_directory(path("empty"));
  const Finished finished = do_here(lockstep({"counters", "--sysfs-root", "empty", "run"}));
  EXPECT_EQ(finished.code, 3) << finished;
  EXPECT_TRUE(has(finished.err, "no counter of a link or GPU can be read on this host")) << finished;
  const Finished wrong = do_here(lockstep({"counters", "--sysfs-root", "root", port_ + "state"}));
  EXPECT_EQ(wrong.code, 2) << wrong;
  EXPECT_TRUE(has(wrong.err, "is no run directory")) << wrong;
}

TEST_F(LinkCounters, AreTracksOfTimelinesAndTablesOfTheDatabase) {
  const Finished finished = do_here(traced("echo 3 > " + port_ + "counters/link_downed; " + moves_data()));
  ASSERT_EQ(finished.code, 0) << finished;
  for (const char* const of : {"run", "t.db"}) {
    const Finished converted = do_here(lockstep({"convert", "-f", "chrome", "--force", "-o", "t.json", of}));
    EXPECT_EQ(converted.code, 0) << converted;
    const auto timeline = nlohmann::json::parse(read_file(path("t.json")), nullptr, false);
    ASSERT_TRUE(timeline.is_object());
    uint64_t downs = 0, rates = 0;
    for (const auto& event : timeline["traceEvents"]) {
      if (event["ph"] != "C") continue;
      if (event["name"] == "mlx5_0/1 link_downed") downs = event["args"]["count"];
      rates += event["name"] == "mlx5_0/1 sent";
    }
    EXPECT_EQ(downs, 3u) << of;
    EXPECT_EQ(rates, 2u) << of;
  }
}

TEST_F(LinkCounters, WhatCannotBeReadOfThemIsALossThatAMergeKeeps) {
  ASSERT_EQ(do_here(traced(moves_data())).code, 0);
  ASSERT_EQ(do_here({"sqlite3", "t.db", "INSERT INTO host_sample VALUES (0, -5, 1)"}).code, 0);
  const Finished merged = do_here(lockstep({"merge", "t.db", "-o", "again.db"}));
  EXPECT_EQ(merged.code, 3) << merged;
  const Finished kept =
      do_here({"sqlite3", "again.db", "SELECT detail FROM losses WHERE kind = 'unreadable_file'"});
  EXPECT_EQ(kept.out, "t.db: 1 value in host_sample that no sampler writes, left out\n") << kept;
}

TEST_F(LinkCounters, AreMetrics) {
  if (has(do_here(lockstep({"exporter", "--once", "nowhere"})).err, "prometheus-cpp"))
    GTEST_SKIP() << "this build has no exporter";
  const Finished finished = do_here(traced("echo 3 > " + port_ + "counters/link_downed; " + moves_data()));
  ASSERT_EQ(finished.code, 0) << finished;
  const Finished once = do_here(lockstep({"exporter", "--once", "--diagnose", "off", "run"}));
  EXPECT_EQ(once.code, 0) << once;
  EXPECT_TRUE(has(once.out, "device=\"mlx5_0/1\",counter=\"link_downed\"} 3")) << once;
  EXPECT_TRUE(has(once.out, "device=\"mlx5_0/1\",direction=\"sent\"} 3600000000")) << once;
  EXPECT_FALSE(has(once.out, "symbol_error")) << once;
}

TEST_F(LinkCounters, ABusyHealthyPortIsSilent) {
  const Finished finished = do_here(traced(moves_data()));
  ASSERT_EQ(finished.code, 0) << finished;
  const Finished diagnosed = do_here(lockstep({"diagnose", "t.db"}));
  EXPECT_EQ(diagnosed.code, 0) << diagnosed;
  EXPECT_TRUE(has(diagnosed.out, "No problem found")) << diagnosed;
  EXPECT_TRUE(has(diagnosed.out, "link counters: 1 host, 1 device, from ")) << diagnosed;
  // Of operations the counters say nothing.
  const Finished alone = do_here(lockstep({"diagnose", "run/" + logs()[0]}));
  EXPECT_EQ(alone.code, 3) << alone;
}

TEST_F(LinkCounters, TheJobIsAsItIsWhereNothingCanBeSampled) {
  std::filesystem::create_directories(path("pipes/sys/class/infiniband/mlx5_0/ports/1"));
  ASSERT_EQ(mkfifo(path("pipes/sys/class/infiniband/mlx5_0/ports/1/state").c_str(), 0600), 0);
  write_file(path("file"), "");
  const auto run_of = [&](const std::string& root, const std::map<std::string, std::string>& environment) {
    const auto begin = std::chrono::steady_clock::now();
    const Finished finished = do_here(
        trace({"--sysfs-root", root, "-o", "t.db"}, {"say", "hello", "ops", "1", "exit", "7"}), environment);
    EXPECT_EQ(finished.code, 7) << root << finished;
    EXPECT_TRUE(has(finished.out, "hello")) << finished;
    EXPECT_FALSE(has(finished.err, "links")) << finished;
    EXPECT_FALSE(exists("t.run")) << root;
    return std::chrono::steady_clock::now() - begin;
  };
  const auto without = run_of("root", {{"LOCKSTEP_LINKS", "off"}});
  for (const char* const root : {"nowhere", "file", "pipes", "root"})
    // A launcher that waited for its sampler would wait for two seconds.
    EXPECT_LT(run_of(root, {}) - without, std::chrono::milliseconds(1500)) << root;
}

TEST_F(LinkCounters, OfTheLaunchersOfAHostOneSamples) {
  const auto task = [&](int rank) {
    return std::map<std::string, std::string>{{"SLURM_JOB_ID", "77"},
                                              {"SLURM_STEP_ID", "0"},
                                              {"SLURM_PROCID", std::to_string(rank)},
                                              {"SLURM_NTASKS", "2"},
                                              {"SLURM_STEP_NUM_TASKS", "2"}};
  };
  const auto words = [&](const std::string& here) {
    return trace({"--sysfs-root", "root", "-o", "t.db", "--dir", "run"},
                 {"ops", "5", "touch", here, "await", "go"});
  };
  Process first(words("a"), here(task(0)));
  ASSERT_TRUE(wait_until([&] { return exists("a") && !logs().empty(); }));
  Process second(words("b"), here(task(1)));
  ASSERT_TRUE(wait_until([&] { return exists("b"); }));
  EXPECT_EQ(logs().size(), 1u);
  write_file(path("go"), "");
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(second.wait().code, 0);
  EXPECT_TRUE(exists("t.db"));
}

// NVML as a library of ours: a GPU falls off the bus and another is slowed down while the job runs.
TEST_F(LinkCounters, WhatHappensToGpusMeanwhileIsFound) {
  write_file(path("nvml"), "");
  const std::string happens =
      "echo 'xid 1 79' > nvml; echo 'answer nvmlDeviceGetCurrentClocksThrottleReasons 2 64' >> nvml; "
      "for i in $(seq 400); do grep -qs ' gpu .* xid_79' \"$LOCKSTEP_DIR\"/links.*.log && break; sleep 0.05; done";
  Argv words = traced(happens);
  words.erase(std::find(words.begin(), words.end(), "--sysfs-root"),
              std::find(words.begin(), words.end(), "-o"));
  const Finished finished = do_here(
      words, {{"LOCKSTEP_NVML", LOCKSTEP_LIB_DIR "/libfake-nvml.so"}, {"LOCKSTEP_FAKE_NVML", path("nvml")}});
  ASSERT_EQ(finished.code, 0) << finished;
  for (const char* const of : {"run", "t.db"}) {
    const Finished diagnosed = do_here(lockstep({"diagnose", of}));
    EXPECT_EQ(diagnosed.code, 1) << diagnosed;
    EXPECT_TRUE(has(diagnosed.out, "0000:1c:00.0 of ")) << diagnosed;
    EXPECT_TRUE(has(diagnosed.out, "the driver reported Xid 79")) << diagnosed;
    EXPECT_TRUE(has(diagnosed.out, "its clock was slowed down (hardware thermal limit)")) << diagnosed;
  }
}

}  // namespace
}  // namespace lockstep::test
