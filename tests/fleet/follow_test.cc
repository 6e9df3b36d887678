// SPDX-License-Identifier: Apache-2.0
// `lockstep push --follow` on each host, and `lockstep diagnose` of what the store has: the verdict is the
// one of the files.
#include <gtest/gtest.h>

#include <filesystem>

#include "store/clickhouse/fake_store.h"
#include "tests/fleet/clickhouse_server.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using store::clickhouse::FakeStore;

Finished lockstep(std::vector<std::string> words) {
  words.insert(words.begin(), LOCKSTEP_BIN_DIR "/lockstep");
  return run(words, {.folder = "", .environment = {}, .input = ""});
}

// A simulated job whose two hosts share no directory.
class TwoHosts {
 public:
  TwoHosts(const std::string& fault, const std::string& mode, const std::string& layout = "dp=8,tp=1") {
    const Finished made =
        run({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", "8", "--layout", layout, "--ranks-per-host",
             "4", "--mode", mode, "--steps", "20", "--ops-per-step", "40", "--fault", fault, "-o", all()},
            {.folder = "", .environment = {}, .input = ""});
    EXPECT_EQ(made.code, 0) << fault << made;
    for (const fs::directory_entry& file : fs::directory_iterator(all())) {
      const std::string name = file.path().filename();
      if (file.path().extension() != ".lks") continue;
      const std::string host = folder_ / name.substr(0, name.find('.'));
      if (fs::create_directory(host)) hosts_.push_back(host);
      fs::create_hard_link(file.path(), host + "/" + name);
    }
  }

  std::string all() const { return folder_ / "all"; }
  const std::vector<std::string>& hosts() const { return hosts_; }
  // Each host's follower, which ends, as all processes have.
  void follow(const std::string& url) const {
    EXPECT_FALSE(hosts_.empty());
    for (const std::string& host : hosts_) {
      const Finished followed = lockstep({"push", "--follow", host, "--to", url + "#job 7"});
      EXPECT_EQ(followed.code, 0) << followed;
    }
  }

 private:
  const TemporaryFolder folder_;
  std::vector<std::string> hosts_;
};

// What a diagnosis says and of whom, without the evidence that it gives.
std::string verdict(const Finished& diagnosed) {
  const size_t end = std::min(diagnosed.out.find("\"evidence\": ["), diagnosed.out.find("\"findings\": ["));
  return "exit code " + std::to_string(diagnosed.code) + ", " + diagnosed.out.substr(0, end) + diagnosed.err;
}

struct Case {
  const char *fault, *mode, *layout = "dp=8,tp=1";
};
void PrintTo(const Case& of, std::ostream* stream) {
  *stream << of.fault << " " << of.mode << " " << of.layout;
}
class Followed : public testing::TestWithParam<Case> {};

TEST_P(Followed, HasTheVerdictOfTheFiles) {
  const Case& of = GetParam();
  const TwoHosts job(of.fault, of.mode, of.layout);
  FakeStore store;
  job.follow(store.url());
  const std::string of_files = verdict(lockstep({"diagnose", "--json", job.all()}));
  EXPECT_EQ(verdict(lockstep({"diagnose", "--json", store.url() + "#job 7"})), of_files);
  EXPECT_EQ(of_files.find("exit code 0"), std::string::npos) << of_files;
}

INSTANTIATE_TEST_SUITE_P(
    Hangs, Followed,
    testing::Values(Case{"never-joined", "default"}, Case{"never-joined", "deep", "dp=2,tp=2,pp=2"},
                    Case{"never-joined:finished", "default"}, Case{"joined-other-op:count", "lite"},
                    Case{"joined-other-op:dtype", "default"}, Case{"joined-other-op:func", "deep"},
                    Case{"joined-other-op:root", "default"}, Case{"joined-other-op:order", "lite"},
                    Case{"rank-dead:between", "default"}, Case{"rank-dead:inside", "deep"},
                    Case{"cross-comm-deadlock:blocking", "default"},
                    Case{"cross-comm-deadlock:enqueued", "default"}, Case{"stuck-in-gpu:kernel", "deep"},
                    Case{"stuck-in-gpu:compute", "deep"}, Case{"stuck-in-gpu", "default"},
                    Case{"stuck-in-network:send", "deep"}, Case{"stuck-in-network:recv", "deep"},
                    Case{"stuck-in-network:peer", "deep"}, Case{"stuck-in-network:gpu", "deep"},
                    Case{"rank-unreachable", "default"}, Case{"init-stuck", "default"},
                    Case{"evidence-missing:file", "default"}, Case{"evidence-missing:ring", "default"}),
    [](const auto& info) {
      std::string name = std::string(info.param.fault) + "_" + info.param.mode + "_" + info.param.layout;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
      return name;
    });

// A host whose follower fell silent while the others go on may be cut off from the store alone.
TEST(FollowedRun, BlamesNobodyForSilence) {
  const TwoHosts job("never-joined", "default");
  FakeStore store;
  job.follow(store.url());
  // One host's follower was started after the other's.
  uint64_t newest = 0;
  for (auto& [key, row] : store.tables["now_processes"].rows)
    newest = std::max(newest, row["seen_ns"].number);
  int64_t blamed = 0;
  for (auto& [key, row] : store.tables["now_processes"].rows) {
    if (row["rank"].number < 4) {
      row["seen_ns"].number = newest - 40'000'000'000;
      row["heartbeat_ns"].number -= 59'700'000'000;
      ++blamed;
    } else {
      row["liveness"].bytes = "running";
    }
  }
  ASSERT_EQ(blamed, 4);
  const Finished silent = lockstep({"diagnose", store.url() + "#job 7"});
  EXPECT_EQ(silent.code, 3) << silent;
  EXPECT_NE(silent.out.find("node-000"), std::string::npos) << silent;
  EXPECT_NE(silent.out.find("what the store has of node-000 is 40."), std::string::npos) << silent;
  const Finished watched = lockstep({"top", "--once", store.url() + "#job 7"});
  EXPECT_EQ(watched.code, 1) << watched;
  EXPECT_EQ(watched.out.find("Ranks 0-3 are silent: no heartbeat for "), 0u) << watched;
  // Nobody writes any more.
  for (auto& [key, row] : store.tables["now_processes"].rows) row["seen_ns"].number -= 3'600'000'000'000;
  const Finished old = lockstep({"top", "--once", store.url() + "#job 7"});
  EXPECT_EQ(old.code, 2) << old;
  EXPECT_NE(old.err.find("no host has written for 60."), std::string::npos) << old;
}

TEST(FollowedRun, SaysWhichRunsThereAre) {
  FakeStore store;
  const TwoHosts job("never-joined", "lite");
  job.follow(store.url());
  const Finished unknown = lockstep({"diagnose", store.url() + "#job 8"});
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_NE(unknown.err.find("no run 'job 8' is followed there; the store has job 7"), std::string::npos)
      << unknown;
  EXPECT_EQ(lockstep({"diagnose", store.url()}).code, 2);
}

// What is damaged in the store is a process of which nothing is known.
TEST(FollowedRun, SurvivesAStoreThatHoldsAnything) {
  FakeStore store;
  const TwoHosts job("never-joined", "lite");
  job.follow(store.url());
  store.tables["now"].rows.begin()->second["newest"].bytes.resize(7);
  store.tables["now_processes"].rows.rbegin()->second["details"].bytes = "x\t\n\\";
  const Finished damaged = lockstep({"diagnose", store.url() + "#job 7"});
  EXPECT_EQ(damaged.code, 1) << damaged;
  EXPECT_NE(damaged.out.find("the state of a process on node-000 is damaged"), std::string::npos) << damaged;
  for (const char* time : {"seen_ns", "heartbeat_ns"}) {
    auto& cell = store.tables["now_processes"].rows.begin()->second[time];
    const auto was = std::exchange(cell.number, uint64_t{1} << 63 | 1);
    const Finished wild = lockstep({"diagnose", store.url() + "#job 7"});
    EXPECT_EQ(wild.code, 2) << wild;
    EXPECT_NE(wild.err.find("`now_processes` holds a row that is not a state"), std::string::npos) << wild;
    cell.number = was;
  }
}

TEST(FollowedRun, IsInARealStore) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const std::string url = "http://" + server.host() + "/fleet";
  const TwoHosts job("cross-comm-deadlock:enqueued", "default");
  for (int times = 0; times < 2; ++times) job.follow(url);
  EXPECT_EQ(verdict(lockstep({"diagnose", "--json", url + "#job 7"})),
            verdict(lockstep({"diagnose", "--json", job.all()})));
  const Finished unknown = lockstep({"diagnose", url + "#job 8"});
  EXPECT_EQ(unknown.code, 2) << unknown;
  EXPECT_NE(unknown.err.find("the store has job 7"), std::string::npos) << unknown;
  const Finished watched = lockstep({"top", "--once", "--json", url + "#job 7"});
  EXPECT_EQ(watched.code, 1) << watched;
  EXPECT_NE(watched.out.find("\"rank\": 7,"), std::string::npos) << watched;
  EXPECT_EQ(lockstep({"top", "--once", url + "#job 7", "."}).code, 2);
  const std::string sql = "SELECT count(), uniq(process), min(state) FROM fleet.now FINAL WHERE rank >= 0";
  EXPECT_NE(
      server.exchange("POST / HTTP/1.0\r\nContent-Length: " + std::to_string(sql.size()) + "\r\n\r\n" + sql)
          .find("\t8\tcalled\n"),
      std::string::npos);
}

}  // namespace
}  // namespace lockstep::test
