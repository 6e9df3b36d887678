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
  write_file(path("go"), "");
  const Finished finished = job.wait();
  EXPECT_EQ(finished.code, 0) << finished;
  EXPECT_TRUE(exists("trace.db")) << finished;
  EXPECT_FALSE(exists("trace.run")) << finished;
  EXPECT_FALSE(has(finished.err, "left behind")) << finished;
  const Finished ended = diagnosed(place);
  EXPECT_TRUE(has(ended.out, "\"state\": \"closed\"")) << ended;
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
