// SPDX-License-Identifier: Apache-2.0
// What is asked, and what is made of answers; what the questions find is tested on a real server in
// tests/fleet.
#include <gtest/gtest.h>

#include "store/clickhouse/wire/loopback_server.h"
#include "store/fleet_questions.h"

namespace lockstep::store {
namespace {

using clickhouse::LoopbackServer;
using Request = LoopbackServer::Request;

const FleetQuestion& verdicts() {
  for (const FleetQuestion& question : fleet_questions())
    if (question.name == "verdicts") return question;
  ADD_FAILURE();
  return fleet_questions()[0];
}

// A store that has the tables, and answers the question with `rows`.
LoopbackServer::Handler store_with(std::string rows, std::vector<Request>* seen = nullptr) {
  return [=](const Request& request) {
    if (seen != nullptr) seen->push_back(request);
    if (request.body.find("version()") != std::string::npos) return LoopbackServer::reply(200, "18.16.1\n");
    if (request.body.find("system.columns") != std::string::npos) return LoopbackServer::reply(200, "2\n");
    if (request.body.find("schema = 0") != std::string::npos) return LoopbackServer::reply(200, "3\n");
    return LoopbackServer::reply(200, rows);
  };
}
Result<FleetAnswer> ask_at(const LoopbackServer& server, const FleetQuestion& question) {
  return ask_fleet(question, {.url = "http://" + server.host() + "/fleet", .key = {}, .patience = {}}, {});
}

TEST(Questions, AreOneSelectEach) {
  for (const FleetQuestion& question : fleet_questions()) {
    const std::string sql = fleet_sql(question, "my`store", {.days = 7, .names = {"it's", "b"}});
    EXPECT_TRUE(sql.starts_with("SELECT ")) << sql;
    EXPECT_EQ(sql.find_first_of(";@"), std::string::npos) << question.name;
    EXPECT_NE(sql.find("`my\\`store`."), std::string::npos) << sql;
    EXPECT_NE(sql.find("today() - 7"), std::string::npos) << sql;
    EXPECT_TRUE(sql.ends_with("\nLIMIT 1001")) << sql;
    // Newer servers leave one row of each key of the left side, too.
    EXPECT_EQ(sql.find("ANY INNER"), std::string::npos) << sql;
  }
}

TEST(Questions, TakeNamesAsTheyAre) {
  for (const FleetQuestion& question : fleet_questions()) {
    if (question.about.empty()) continue;
    const std::string sql = fleet_sql(question, "my@FIRST", {.names = {"@DB'; DROP", "@SECOND"}});
    EXPECT_NE(sql.find("'@DB\\'; DROP'"), std::string::npos) << sql;
    EXPECT_NE(sql.find("`my@FIRST`."), std::string::npos) << sql;
    EXPECT_EQ(sql.find("'@SECOND'") != std::string::npos, question.about == "runs") << sql;
  }
}

TEST(Questions, OnlyReadAndEnd) {
  std::vector<Request> seen;
  const LoopbackServer server(store_with("never-joined\tnever-joined\t2\t0.5\t1.5\t17\n", &seen));
  const auto answer = ask_at(server, verdicts());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->rows.size(), 1u);
  EXPECT_FALSE(answer->is_cut);
  EXPECT_EQ(answer->without_rollups, 0u);
  for (const Request& request : seen) {
    EXPECT_EQ(request.query(), "max_execution_time=120&readonly=1");
    EXPECT_TRUE(request.body.starts_with("SELECT ")) << request.body;
  }
}

TEST(Questions, AreAskedByUsersWhoMayOnlyRead) {
  const LoopbackServer server([](const Request& request) {
    if (!request.query().empty())
      return LoopbackServer::reply(500,
                                   "Code: 164, e.displayText() = DB::Exception: Cannot override setting "
                                   "(max_execution_time) in readonly mode");
    return store_with("")(request);
  });
  const auto answer = ask_at(server, fleet_questions()[0]);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->without_rollups, 3u);
}

TEST(Questions, HaveAtMostAThousandRows) {
  std::string rows;
  for (size_t i = 0; i <= kMostFleetRows; ++i) rows += "a\tb\t2\t0.5\t1.5\t17\n";
  const LoopbackServer server(store_with(rows));
  const auto answer = ask_at(server, verdicts());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_TRUE(answer->is_cut);
  EXPECT_EQ(answer->rows.size(), kMostFleetRows);
}

TEST(Questions, TakeNoTextForANumber) {
  const LoopbackServer server(store_with("a\tb\ttwo\t0.5\t1.5\t17\n"));
  const auto answer = ask_at(server, verdicts());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(answer.error().message().find("no number for runs"), std::string::npos)
      << answer.error().message();
}

TEST(Questions, SayThatNothingWasPushed) {
  const LoopbackServer server([](const Request& request) {
    return LoopbackServer::reply(200,
                                 request.body.find("version()") != std::string::npos ? "24.8.1\n" : "1\n");
  });
  const auto answer = ask_at(server, verdicts());
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message().find("database fleet has no runs"), std::string::npos)
      << answer.error().message();
}

}  // namespace
}  // namespace lockstep::store
