// SPDX-License-Identifier: Apache-2.0
// `lockstep push` as a user runs it.
#include "store/clickhouse/wire/loopback_server.h"
#include "tests/fleet/clickhouse_server.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

using store::clickhouse::LoopbackServer;

const std::string kRun = LOCKSTEP_SOURCE_DIR "/tests/traces/v1.7/ring.lks.gz";

Finished push(std::vector<std::string> words, std::map<std::string, std::string> environment = {}) {
  words.insert(words.begin(), {LOCKSTEP_BIN_DIR "/lockstep", "push"});
  return run(words, {.folder = "", .environment = std::move(environment), .input = ""});
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string statement(const ClickHouseServer& server, const std::string& sql) {
  return server.exchange("POST / HTTP/1.0\r\nContent-Length: " + std::to_string(sql.size()) + "\r\n\r\n" +
                         sql);
}

TEST(PushCommand, SendsARunAndSaysWhereItIs) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const std::string url = "http://ann@" + server.host() + "/runs";
  const Finished first = push({kRun, "--to", url}, {{"LOCKSTEP_PUSH_KEY", "right"}});
  EXPECT_EQ(first.code, 0) << first;
  EXPECT_TRUE(has(first.out, " in runs: 2,919 rows, 2,919 of them sent now (")) << first;
  const Finished second = push({kRun, "--to", "http://ann:right@" + server.host() + "/runs/"});
  EXPECT_EQ(second.code, 0) << second;
  EXPECT_EQ(second.out, first.out.substr(0, first.out.find(", 2,919 of")) + ", all of them there already\n");
  EXPECT_TRUE(has(statement(server, "SELECT name, ops FROM runs.runs FINAL"), "ring.lks.gz\t2905\n"));
  EXPECT_TRUE(has(statement(server, "SELECT sum(ops), count() FROM runs.rollups FINAL"), "2905\t2\n"));
}

TEST(PushCommand, StoresWhatThePageAsks) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  ASSERT_EQ(push({kRun, "--to", "http://" + server.host() + "/fleet"}).code, 0);
  std::istringstream page(read_file(LOCKSTEP_SOURCE_DIR "/docs/fleet.md"));
  std::string question;
  size_t questions = 0;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (inside && line == "```") {
      const std::string answer = statement(server, question);
      EXPECT_TRUE(has(answer.substr(0, answer.find('\n')), " 200 ")) << question << answer;
      ++questions;
      inside = false;
    } else if (inside) {
      question +=
          (line.find("run = N ") == std::string::npos ? line : line.replace(line.find("= N"), 3, "!= 0")) +
          '\n';
    } else if (line == "```sql") {
      inside = true;
      question.clear();
    }
  }
  EXPECT_GE(questions, 1U);
}

TEST(PushCommand, SaysWhatTheStoreHasLost) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const std::string url = "http://" + server.host() + "/fleet";
  ASSERT_EQ(push({kRun, "--to", url}).code, 0);
  statement(server, "DROP TABLE fleet.ops");
  const Finished again = push({kRun, "--to", url});
  EXPECT_EQ(again.code, 1) << again;
  EXPECT_TRUE(has(again.out, "DIFFERENCE: ops holds 0 rows of this run, which has 2,905\n")) << again;
}

TEST(FleetCheck, ComparesWhatIsStoredWithTheRun) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const std::string url = "http://" + server.host() + "/fleet";
  const auto check = [&] {
    return run({LOCKSTEP_BIN_DIR "/lockstep", "fleet", "check", kRun, "--from", url}, {});
  };
  const Finished none = check();
  EXPECT_EQ(none.code, 2) << none;
  EXPECT_TRUE(has(none.err, "database fleet has no table processes: push a run to it")) << none;
  ASSERT_EQ(push({kRun, "--to", url}).code, 0);
  const Finished whole = check();
  EXPECT_EQ(whole.code, 0) << whole;
  EXPECT_TRUE(has(whole.out, " in fleet: 2,919 rows in 7 batches, all of them there\n")) << whole;
  // As after a text of the same length: counts and sums are equal.
  statement(
      server,
      "INSERT INTO fleet.batches SELECT day, run, target, batch, rows, digest + 1, written_ns, version + 1 "
      "FROM fleet.batches WHERE target = 'losses'");
  const Finished other = check();
  EXPECT_EQ(other.code, 1) << other;
  EXPECT_TRUE(has(other.out,
                  "DIFFERENCE: of 1 batch of losses, the store confirmed 1 with another content, or never\n"))
      << other;
  statement(server, "TRUNCATE TABLE fleet.rollups");
  const Finished lost = check();
  EXPECT_EQ(lost.code, 1) << lost;
  EXPECT_TRUE(has(lost.out, "DIFFERENCE: rollups holds 0 rows of this run, which has 2\n")) << lost;
}

TEST(PushCommand, TellsWhoMayNot) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const Finished refused =
      push({kRun, "--to", "http://ann@" + server.host() + "/fleet"}, {{"LOCKSTEP_PUSH_KEY", "s3cret"}});
  EXPECT_EQ(refused.code, 2) << refused;
  EXPECT_FALSE(has(refused.out + refused.err, "s3cret")) << refused;
  EXPECT_TRUE(has(refused.err, "ann")) << refused;
}

TEST(PushCommand, SaysThatItCannotTellWhenNobodyAnswers) {
  std::string host;
  {
    const LoopbackServer gone([](const LoopbackServer::Request&) { return LoopbackServer::Reply{}; });
    host = gone.host();
  }
  const Finished finished = push({kRun, "--to", "http://" + host, "--patience", "1ms"});
  EXPECT_EQ(finished.code, 3) << finished;
  EXPECT_TRUE(has(finished.err, host)) << finished;
  EXPECT_TRUE(has(finished.err, "the same command sends the rest")) << finished;
  EXPECT_EQ(finished.out, "");
}

TEST(PushCommand, RefusesWrongWordsBeforeItReads) {
  const std::vector<std::string> kWrong[] = {{"/no/such/run"},
                                             {"/no/such/run", "--to", "store:8123"},
                                             {"/no/such/run", "--to", "http://x", "--patience", "soon"},
                                             {"--to", "http://x"}};
  const char* const kWords[] = {"--to is missing", "http://HOST:8123/DATABASE", "--patience takes", "RUN"};
  for (size_t i = 0; i < std::size(kWrong); ++i) {
    const Finished finished = push(kWrong[i]);
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_TRUE(has(finished.err, kWords[i])) << finished;
    EXPECT_FALSE(i < 3 && has(finished.err, "no/such")) << finished;
  }
}

TEST(PushCommand, RefusesWhatHoldsNoOperations) {
  const TemporaryFolder folder;
  write_file(folder / "job.log", "node1:1:1 [0] NCCL INFO NCCL version 2.19.3+cuda12.2\n");
  for (const std::string& input : {folder / "none", folder / "job.log"}) {
    const Finished finished = push({input, "--to", "http://127.0.0.1:1/"});
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_TRUE(has(finished.err, input)) << finished;
  }
}

}  // namespace
}  // namespace lockstep::test
