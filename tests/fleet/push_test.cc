// SPDX-License-Identifier: Apache-2.0
// A run pushed into a real ClickHouse, with all that may happen to the pusher and to the server meanwhile.
#include <future>

#include "store/clickhouse/fleet_job.h"
#include "store/clickhouse/wire/client.h"
#include "store/clickhouse/wire/loopback_server.h"
#include "store/fleet.h"
#include "tests/fleet/clickhouse_server.h"
#include "tests/support/child.h"

namespace lockstep::test {
namespace {

using store::PushResult;
using store::clickhouse::Client;
using store::clickhouse::FleetJob;
using store::clickhouse::LoopbackServer;
using store::clickhouse::Rows;

store::FleetTarget target(const std::string& host, const std::string& database) {
  return {.url = "http://" + host + "/" + database,
          .key = {},
          .patience = std::chrono::seconds(int(kPatienceSeconds))};
}

Rows ask(const ClickHouseServer& server, const std::string& sql, size_t columns) {
  auto client = Client::open(*store::clickhouse::parse_address("http://" + server.host()), {});
  EXPECT_TRUE(client);
  const auto rows = client->select(sql, columns);
  EXPECT_TRUE(rows) << rows.error().message();
  return rows ? *rows : Rows();
}

// All rows of the job are there, once.
void expect_whole(const ClickHouseServer& server, const std::string& database) {
  for (const auto& [table, rows] : std::map<std::string, std::string>{{"processes", "2"},
                                                                      {"comms", "1"},
                                                                      {"ops", "10"},
                                                                      {"rollups", "2"},
                                                                      {"findings", "2"},
                                                                      {"losses", "1"},
                                                                      {"runs", "1"}})
    EXPECT_EQ(ask(server, "SELECT count() FROM " + database + "." + table + " FINAL", 1), (Rows{{rows}}))
        << table;
}
void expect_whole(const Result<PushResult>& pushed) {
  ASSERT_TRUE(pushed) << pushed.error().message();
  EXPECT_EQ(pushed->differences, std::vector<std::string>{});
  EXPECT_EQ(pushed->rows, 19u);
}

// Stands between a pusher and a server: hands on each request, but inserts only if `meddle`, which is told
// their number, does. Nothing as a reply: it hangs up.
class Between {
 public:
  using Reply = LoopbackServer::Reply;
  using Meddle = std::function<Reply(int insert, const std::function<Reply()>& hand_on)>;
  Between(const ClickHouseServer& server, Meddle meddle) : server_(server), meddle_(std::move(meddle)) {}
  std::string host() const { return loopback_.host(); }

 private:
  Reply answer(const LoopbackServer::Request& request) {
    const auto hand_on = [&]() -> Reply {
      return {server_.exchange(request.head + "\r\nConnection: close\r\n\r\n" + request.body), {}};
    };
    return request.query().starts_with("query=INSERT") ? meddle_(inserts_++, hand_on) : hand_on();
  }
  const ClickHouseServer& server_;
  Meddle meddle_;
  int inserts_ = 0;
  LoopbackServer loopback_{[this](const LoopbackServer::Request& request) { return answer(request); }};
};

TEST(FleetPush, StoresARunOnceHoweverOftenItIsPushed) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const FleetJob job;
  const auto first = store::push(job.run, target(server.host(), "fleet"), {});
  expect_whole(first);
  EXPECT_EQ(first->sent_rows, 19u);
  const auto second = store::push(job.run, target(server.host(), "fleet"), {});
  expect_whole(second);
  EXPECT_EQ(second->sent_rows, 0u);
  expect_whole(server, "fleet");
  EXPECT_EQ(ask(server,
                "SELECT rank, op_index, func, bytes, toString(day) FROM fleet.ops FINAL WHERE run = " +
                    std::to_string(first->run) + " AND nth = 0 ORDER BY rank, op_index, peer",
                5),
            (Rows{{"0", "0", "AllReduce", "16", "2022-01-08"},
                  {"0", "0", "Send", "8", "2022-01-08"},
                  {"0", "1", "AllReduce", "16", "2022-01-08"},
                  {"0", "2", "AllReduce", "16", "2022-01-09"},
                  {"1", "0", "AllReduce", "16", "2022-01-08"},
                  {"1", "0", "Send", "8", "2022-01-08"},
                  {"1", "1", "AllReduce", "16", "2022-01-08"},
                  {"1", "2", "AllReduce", "16", "2022-01-09"}}));
}

TEST(FleetPush, StoresHostileNamesAsTheyAre) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  FleetJob job;
  job.run.findings[0].statement = std::string(1 << 20, '\'') + "`); DROP TABLE fleet.runs; --";
  // The database's name comes from a URL.
  const auto pushed = store::push(job.run, target(server.host(), "a%60%27b%5C%20c"), {});
  expect_whole(pushed);
  expect_whole(server, "`a\\`\\'b\\\\ c`");
  EXPECT_EQ(ask(server, "SELECT DISTINCT hex(host) FROM `a\\`\\'b\\\\ c`.ops", 1),
            (Rows{{"6E6F64652731603B2044524F50205441424C45207800FF225C"}}));
  EXPECT_EQ(ask(server, "SELECT max(length(statement)) FROM `a\\`\\'b\\\\ c`.findings", 1),
            (Rows{{"1048605"}}));
}

TEST(FleetPush, GoesOnAfterAKillOfThePusher) {
  NEED_CLICKHOUSE();
  ClickHouseServer server;
  for (const int stop : {0, 1, 2, 5, 8, 10, 16, 17}) {
    for (const bool is_stored : {false, true}) {
      const std::string database = "kill" + std::to_string(stop) + (is_stored ? "stored" : "lost");
      int url[2];
      ASSERT_EQ(pipe(url), 0);
      Child pusher = Child::start({}, [&] {
        char host[64] = {};
        EXPECT_GT(read(url[0], host, sizeof host - 1), 0);
        const FleetJob job;
        const auto pushed = store::push(job.run, target(host, database), {});
        EXPECT_TRUE(pushed);
      });
      {
        const Between between(server, [&](int insert, const auto& hand_on) {
          if (insert != stop) return hand_on();
          if (is_stored) hand_on();
          ::kill(pusher.pid(), SIGKILL);
          return Between::Reply{};
        });
        const std::string host = between.host();
        ASSERT_EQ(write(url[1], host.data(), host.size()), ssize_t(host.size()));
        EXPECT_EQ(pusher.wait().signal, SIGKILL);
      }
      close(url[0]);
      close(url[1]);
      const FleetJob job;
      const auto pushed = store::push(job.run, target(server.host(), database), {});
      expect_whole(pushed);
      const int stored = stop + (is_stored ? 1 : 0);
      EXPECT_EQ(pushed->sent_batches, static_cast<uint64_t>(9 - stored / 2)) << stop << is_stored;
      expect_whole(server, database);
    }
  }
}

TEST(FleetPush, OutlivesAKillOfTheServer) {
  NEED_CLICKHOUSE();
  ClickHouseServer server;
  for (const bool is_stored : {false, true}) {
    int kills = 0;
    const Between between(server, [&](int insert, const auto& hand_on) {
      if (insert % 5 != 2 || kills == 2) return hand_on();
      if (is_stored) hand_on();
      ++kills;
      server.kill();
      server.start();
      return Between::Reply{};
    });
    const FleetJob job;
    const std::string database = is_stored ? "stored" : "lost";
    expect_whole(store::push(job.run, target(between.host(), database), {}));
    EXPECT_EQ(kills, 2);
    server.kill();
    server.start();
    expect_whole(server, database);
  }
}

// Its files may grow to a block of 512 bytes, and then its writes fail as on a full disk.
TEST(FleetPush, OutlivesAFullDiskOfTheServer) {
  NEED_CLICKHOUSE();
  ClickHouseServer server;
  FleetJob job;
  expect_whole(store::push(job.run, target(server.host(), "fleet"), {}));
  server.kill();
  server.start("trap '' XFSZ; ulimit -f 1; ");
  // Longer than a block, however it is compressed.
  std::string& statement = job.run.findings[0].statement;
  for (uint32_t i = 1; statement.size() < 4096; ++i) statement += std::to_string(i * 2'654'435'761U);
  store::FleetTarget impatient = target(server.host(), "fleet");
  impatient.patience = std::chrono::milliseconds(600);
  const auto full = store::push(job.run, impatient, {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kIo) << full.error().message();
  EXPECT_NE(full.error().message().find("Cannot write to file"), std::string::npos) << full.error().message();
  server.kill();
  server.start();
  expect_whole(store::push(job.run, target(server.host(), "fleet"), {}));
  expect_whole(server, "fleet");
  EXPECT_EQ(ask(server, "SELECT max(length(statement)) FROM fleet.findings FINAL", 1),
            (Rows{{std::to_string(statement.size())}}));
}

TEST(FleetPush, BringsAStoreOfTheFirstSchemaUpToDate) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const FleetJob job;
  expect_whole(store::push(job.run, target(server.host(), "fleet"), {}));
  auto client = Client::open(*store::clickhouse::parse_address("http://" + server.host()), {});
  ASSERT_TRUE(client);
  for (const char* statement :
       {"ALTER TABLE fleet.runs DROP COLUMN schema", "DROP TABLE fleet.rollups", "DROP TABLE fleet.batches"})
    ASSERT_TRUE(client->execute(statement)) << statement;
  expect_whole(store::push(job.run, target(server.host(), "fleet"), {}));
  expect_whole(server, "fleet");
  EXPECT_EQ(ask(server, "SELECT schema FROM fleet.runs FINAL", 1), (Rows{{"1"}}));
}

TEST(FleetPush, HasSeveralPushersOfOneRun) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const auto push = [&] {
    const FleetJob job;
    return store::push(job.run, target(server.host(), "fleet"), {});
  };
  auto other = std::async(std::launch::async, push);
  expect_whole(push());
  expect_whole(other.get());
  expect_whole(server, "fleet");
}

TEST(FleetPush, AsksWithUserAndKey) {
  NEED_CLICKHOUSE();
  const ClickHouseServer server;
  const FleetJob job;
  store::FleetTarget as_ann = target("ann@" + server.host(), "fleet");
  for (const char* key : {"", "wr0ng"}) {
    as_ann.key = key;
    const auto refused = store::push(job.run, as_ann, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPermission) << refused.error().message();
    EXPECT_EQ(refused.error().message().find("wr0ng"), std::string::npos);
  }
  as_ann.key = "right";
  expect_whole(store::push(job.run, as_ann, {}));
}

}  // namespace
}  // namespace lockstep::test
