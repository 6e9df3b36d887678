// SPDX-License-Identifier: Apache-2.0
// `lockstep trace --push`: what a job does is in the store while it runs, and nothing that the store does
// reaches the job.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>

#include "store/clickhouse/fake_store.h"
#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

using store::clickhouse::FakeStore;

class TracePush : public Workplace {
 protected:
  static Argv traced(const std::string& place, const Argv& words) {
    return trace({"--push", place, "-o", "trace.db"}, words);
  }
  Finished diagnosed(const std::string& place) const {
    return do_here(lockstep({"diagnose", "--json", place}));
  }
};

TEST_F(TracePush, IsInTheStoreWhileItRunsAndWhenItHasEnded) {
  FakeStore store;
  const std::string place = store.url() + "#job 7";
  Process job(traced(place, {"ops", "5", "touch", "ready", "await", "go"}), here(rank(0, 1)));
  ASSERT_TRUE(wait_until([&] { return exists("ready"); }));
  std::string seen;
  EXPECT_TRUE(wait_until([&] {
    seen = diagnosed(place).out;
    return has(seen, "\"liveness\": \"running\"");
  })) << seen;
  const Finished watched = do_here(lockstep({"top", "--once", "--json", place}));
  EXPECT_EQ(watched.code, 0) << watched;
  for (const char* part :
       {"\"rank\": 0,", "\"state\": \"good\"", "\"func\": \"allreduce\"", "\"The process runs.\""})
    EXPECT_TRUE(has(watched.out, part)) << part << watched;
  write_file(path("go"), "");
  const Finished finished = job.wait();
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_TRUE(exists("trace.db")) << finished;
  EXPECT_FALSE(exists("trace.run")) << finished;
  EXPECT_FALSE(has(finished.err, "left behind")) << finished;
  const Finished ended = diagnosed(place);
  EXPECT_TRUE(has(ended.out, "\"state\": \"closed\"")) << ended;
  const Finished after = do_here(lockstep({"top", "--once", place}));
  EXPECT_TRUE(after.code == 0 && has(after.out, "All 1 process ended normally.")) << after;
}

TEST_F(TracePush, LeavesTheJobAloneWhereNobodyAnswers) {
  const auto begin = std::chrono::steady_clock::now();
  const Finished finished =
      do_here(traced("http://127.0.0.1:1/fleet#j", {"ops", "5", "exit", "7"}), rank(0, 1));
  EXPECT_EQ(finished.code, 7) << finished;
  EXPECT_TRUE(exists("trace.db")) << finished;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(int(kPatienceSeconds)));
}

// The kernel takes the connection, and nobody ever reads from it.
TEST_F(TracePush, WaitsNoLongForAStoreThatHangs) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string place = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/fleet#j";
  const Finished finished = do_here(traced(place, {"ops", "5"}), rank(0, 1));
  close(listener);
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_TRUE(exists("trace.db")) << finished;
  EXPECT_TRUE(has(finished.err, "the store did not take how the job ended")) << finished;
}

// Launchers of one host write once: the first of them, then the next.
TEST_F(TracePush, WritesOnceAHost) {
  FakeStore store;
  const std::string place = store.url() + "#job 7";
  const auto launcher = [&](int rank, const std::string& go) {
    std::map<std::string, std::string> slurm = Workplace::rank(rank, 2);
    slurm.insert({{"SLURM_JOB_ID", "7"},
                  {"SLURM_STEP_ID", "0"},
                  {"SLURM_NTASKS", "2"},
                  {"SLURM_PROCID", std::to_string(rank)},
                  {"SLURM_NODEID", "0"}});
    return std::make_unique<Process>(traced(place, {"ops", "5", "await", go}), here(slurm));
  };
  const auto first = launcher(0, "go0");
  // The lock is the first one's only once it is taken.
  ASSERT_TRUE(wait_until([&] { return has(diagnosed(place).out, "\"liveness\": \"running\""); }));
  const auto second = launcher(1, "go1");
  EXPECT_TRUE(wait_until([&] { return has(diagnosed(place).out, "\"rank\": 1"); }));
  EXPECT_EQ(store.column_reads, 1) << "two followers";
  write_file(path("go0"), "");
  EXPECT_EQ(first->wait().code, 0);
  EXPECT_TRUE(wait_until([&] { return store.column_reads == 2; })) << "nobody goes on";
  write_file(path("go1"), "");
  EXPECT_EQ(second->wait().code, 0);
  const std::string ended = diagnosed(place).out;
  EXPECT_FALSE(has(ended, "\"state\": \"open\"")) << ended;
  EXPECT_TRUE(has(ended, "\"state\": \"closed\"")) << ended;
}

// Between a rank's end and its next start there is no process, but still a job.
TEST_F(TracePush, AFollowerStaysWhileALauncherMayStartRanksAgain) {
  FakeStore store;
  const std::string place = store.url() + "#job 7";
  Process follower(lockstep({"push", "--follow", "run", "--to", place}), here());
  Process job(lockstep({"trace", "--dir", "run", "--", "sh", "-c",
                        LOCKSTEP_E2E_JOB " ops 5; while ! [ -e go ]; do sleep 0.05; done; " LOCKSTEP_E2E_JOB
                                         " ops 9"}),
              here(rank(0, 1)));
  std::string seen;
  EXPECT_TRUE(wait_until([&] {
    seen = diagnosed(place).out;
    return has(seen, "\"state\": \"closed\"");
  })) << seen;
  write_file(path("go"), "");
  EXPECT_EQ(job.wait().code, 0);
  const Finished followed = follower.wait();
  EXPECT_EQ(followed.code, 0) << followed;
  EXPECT_EQ(store.tables["now_processes"].rows.size(), 2u) << followed;
}

// All jobs whose run directory is trace.run would be one.
TEST_F(TracePush, AFollowerWantsANameThatNoOtherJobHas) {
  const Finished unnamed =
      do_here(lockstep({"push", "--follow", "trace.run", "--to", "http://127.0.0.1:1/fleet"}));
  EXPECT_EQ(unnamed.code, 2) << unnamed;
  EXPECT_TRUE(has(unnamed.err, "--to takes URL#NAME")) << unnamed;
}

TEST_F(TracePush, WantsANameBeforeTheJobBegins) {
  for (const std::string& place : {std::string("http://127.0.0.1:1/fleet"), std::string("store#job"),
                                   "http://127.0.0.1:1/#" + std::string(300, 'x')}) {
    const Finished finished = do_here(traced(place, {"touch", "started"}));
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_FALSE(exists("started")) << finished;
  }
}

}  // namespace
}  // namespace lockstep::test
