// SPDX-License-Identifier: Apache-2.0
// The client against a server that fails in every way that servers and networks have.
#include "store/clickhouse/wire/client.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "store/clickhouse/wire/loopback_server.h"
#include "store/clickhouse/wire/unpacked_frames.h"

namespace lockstep::store::clickhouse {
namespace {

using std::chrono::milliseconds;
using Reply = LoopbackServer::Reply;
using Request = LoopbackServer::Request;

constexpr milliseconds kPause{1};
ClientLimits quick() {
  ClientLimits limits;
  limits.first_pause = limits.longest_pause = kPause;
  return limits;
}

const char* const kSecret = "s3cret/key";

// Answers a version, and to everything else what `then` says, by how many of these there were.
LoopbackServer::Handler versioned(std::function<Reply(const Request&, int)> then) {
  return [then = std::move(then), count = 0](const Request& request) mutable {
    if (request.body.find("version()") != std::string::npos) return LoopbackServer::reply(200, "18.16.1\n");
    return then(request, count++);
  };
}
Result<Client> client_of(const LoopbackServer& server, const ClientLimits& limits = quick()) {
  Address address;
  address.base = "http://" + server.host() + "/";
  address.user = "ann";
  address.key = kSecret;
  return Client::open(address, limits);
}
void expect_no_secret(const Error& error) {
  EXPECT_EQ(error.message().find(kSecret), std::string::npos) << error.message();
}

TEST(Client, AsksWithUserAndKeyAndReadsRows) {
  std::vector<Request> seen;
  LoopbackServer server(versioned([&](const Request& request, int) {
    seen.push_back(request);
    return LoopbackServer::reply(200, "a\t1\nb\\tc\t2\n");
  }));
  auto client = client_of(server);
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->version(), (Version{18, 16}));
  const auto rows = client->select("SELECT x, y FROM t", 2);
  ASSERT_TRUE(rows) << rows.error().message();
  EXPECT_EQ(*rows, (Rows{{"a", "1"}, {"b\tc", "2"}}));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].body, "SELECT x, y FROM t FORMAT TabSeparated");
  EXPECT_NE(seen[0].head.find("X-ClickHouse-User: ann\r\n"), std::string::npos) << seen[0].head;
  EXPECT_NE(seen[0].head.find(std::string("X-ClickHouse-Key: ") + kSecret), std::string::npos);
  EXPECT_EQ(seen[0].head.find("Expect"), std::string::npos);
}

// What a server does with the first tries of an insert, after which it takes it.
void expect_inserted(std::function<Reply(int)> fail, int failures) {
  std::vector<std::string> bodies;
  LoopbackServer server(versioned([&](const Request& request, int count) {
    bodies.push_back(request.body);
    EXPECT_EQ(request.query(), "query=INSERT INTO t FORMAT Native");
    return count < failures ? fail(count) : LoopbackServer::reply(200, "");
  }));
  auto client = client_of(server);
  ASSERT_TRUE(client) << client.error().message();
  const std::string block("\0\xff block", 8);
  const auto inserted = client->insert("INSERT INTO t FORMAT Native", block);
  EXPECT_TRUE(inserted) << inserted.error().message();
  EXPECT_EQ(bodies, std::vector<std::string>(static_cast<size_t>(failures) + 1, block));
}

TEST(Client, SendsAgainWhatAnAnswerWasLostOf) {
  expect_inserted([](int) { return Reply{}; }, 1);
}
TEST(Client, SendsAgainWhatAnAnswerWasCutOf) {
  expect_inserted([](int) { return Reply{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nCo", {}}; }, 2);
}
TEST(Client, WaitsUntilPartsAreMerged) {
  expect_inserted(
      [](int) {
        return LoopbackServer::reply(500, "Code: 252, e.displayText() = DB::Exception: Too many parts (300)");
      },
      3);
}
TEST(Client, WaitsForAServerThatIsBusyOrStarting) {
  expect_inserted([](int count) { return LoopbackServer::reply(count == 0 ? 503 : 429, "<html>"); }, 2);
}
TEST(Client, BelievesNoStatusThatWasSentTooSoon) {
  expect_inserted([](int) { return LoopbackServer::reply(200, "Code: 241, DB::Exception: Memory limit"); },
                  1);
}

TEST(Client, SendsAgainWhatWasCutOnItsWay) {
  int cuts = 2;
  LoopbackServer server(versioned([](const Request&, int) { return LoopbackServer::reply(200, ""); }),
                        [&](const std::string& head) {
                          return head.find("INSERT") != head.npos && cuts-- > 0 ? 1000 : SIZE_MAX;
                        });
  auto client = client_of(server);
  ASSERT_TRUE(client) << client.error().message();
  const auto inserted = client->insert("INSERT INTO t FORMAT Native", std::string(1 << 20, 'x'));
  EXPECT_TRUE(inserted) << inserted.error().message();
  EXPECT_EQ(server.requests(), 1 + 3);
}

// What is final is reported at the first answer.
void expect_refused(const Reply& reply, ErrorCode code, const std::string& words) {
  LoopbackServer server(versioned([&](const Request&, int) { return reply; }));
  auto client = client_of(server);
  ASSERT_TRUE(client) << client.error().message();
  const auto inserted = client->insert("INSERT INTO t FORMAT Native", "block");
  ASSERT_FALSE(inserted);
  EXPECT_EQ(inserted.error().code, code);
  EXPECT_NE(inserted.error().message().find(words), std::string::npos) << inserted.error().message();
  expect_no_secret(inserted.error());
  EXPECT_EQ(server.requests(), 2);
}

TEST(Client, TellsAtOnceWhatIsFinal) {
  expect_refused(
      LoopbackServer::reply(500, "Code: 193, e.displayText() = DB::Exception: Wrong password for user ann"),
      ErrorCode::kPermission, "Wrong password");
  expect_refused(LoopbackServer::reply(403, "Code: 516. DB::Exception: ann: Authentication failed"),
                 ErrorCode::kPermission, "Authentication failed");
  expect_refused(LoopbackServer::reply(401, ""), ErrorCode::kPermission, "401");
  expect_refused(LoopbackServer::reply(500, "Code: 62, e.displayText() = DB::Exception: Syntax error"),
                 ErrorCode::kUnsupported, "Syntax error");
  expect_refused(LoopbackServer::reply(404, "<html>"), ErrorCode::kUnsupported, "404");
  expect_refused(LoopbackServer::reply(200, "<html>hello\x1b[31m"), ErrorCode::kUnsupported, "hello?[31m");
}

TEST(Client, FollowsNoRedirectWithItsKey) {
  LoopbackServer other([](const Request&) { return LoopbackServer::reply(200, "18.16.1\n"); });
  LoopbackServer server([&](const Request&) {
    return Reply{"HTTP/1.1 307 X\r\nLocation: http://" + other.host() + "/\r\nContent-Length: 0\r\n\r\n", {}};
  });
  const auto client = client_of(server);
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message().find("307"), std::string::npos) << client.error().message();
  EXPECT_EQ(other.requests(), 0);
}

TEST(Client, TakesNoOtherServerForClickHouse) {
  for (const char* body : {"<html>\n", "", "1\n2\n", "x\n", "18\n", "18.x\n", "18.16.1"}) {
    LoopbackServer server([&](const Request&) { return LoopbackServer::reply(200, body); });
    const auto client = client_of(server);
    ASSERT_FALSE(client) << body;
    EXPECT_EQ(client.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(client.error().message().find("ClickHouse"), std::string::npos) << client.error().message();
    EXPECT_EQ(server.requests(), 1) << body;
  }
}

TEST(Client, HangsUpOnAnAnswerWithoutEnd) {
  LoopbackServer server([&](const Request&) {
    return Reply{"HTTP/1.1 200 OK\r\n\r\n", [] { return std::string(65536, 'x'); }};
  });
  ClientLimits limits = quick();
  limits.http.answer_bytes = 1 << 20;
  const auto client = client_of(server, limits);
  ASSERT_FALSE(client);
  EXPECT_NE(client.error().message().find("no end"), std::string::npos) << client.error().message();
  EXPECT_EQ(server.requests(), 1);
}

TEST(Client, GivesUpWhenPatienceRunsOut) {
  LoopbackServer server([](const Request&) { return LoopbackServer::reply(503, "later"); });
  ClientLimits limits = quick();
  limits.patience = milliseconds(50);
  const auto client = client_of(server, limits);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kIo);
  EXPECT_NE(client.error().message().find("503: later; gave up after 50"), std::string::npos)
      << client.error().message();
  EXPECT_NE(client.error().message().find(server.host()), std::string::npos);
  expect_no_secret(client.error());
  EXPECT_GT(server.requests(), 1);
}

TEST(Client, GivesUpOnAServerThatSaysNothing) {
  std::promise<void> end;
  LoopbackServer server([over = end.get_future().share()](const Request&) {
    over.wait();
    return Reply{};
  });
  ClientLimits limits = quick();
  limits.http.stall = std::chrono::seconds(1);
  limits.patience = milliseconds(0);
  const auto client = client_of(server, limits);
  end.set_value();
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kIo);
  EXPECT_NE(client.error().message().find("gave up"), std::string::npos) << client.error().message();
}

TEST(Client, SaysThatNobodyListens) {
  std::string host;
  {
    LoopbackServer gone([](const Request&) { return Reply{}; });
    host = gone.host();
  }
  ClientLimits limits = quick();
  limits.patience = milliseconds(0);
  Address address;
  address.base = "http://" + host + "/";
  const auto client = Client::open(address, limits);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kIo);
  EXPECT_NE(client.error().message().find(host), std::string::npos) << client.error().message();
}

TEST(Client, SaysThatTheOtherSideSpeaksNoTls) {
  LoopbackServer server([](const Request&) { return Reply{}; });
  Address address;
  address.base = "https://" + server.host() + "/";
  const auto client = Client::open(address, quick());
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kUnsupported) << client.error().message();
}

TEST(CurlLibrary, SaysWhatIsMissing) {
  constexpr const char* kNone[] = {"liblockstep-no-such-library.so.4"};
  const auto library = curl::load(kNone);
  ASSERT_FALSE(library);
  EXPECT_NE(library.error().message().find("libcurl4"), std::string::npos);
  constexpr const char* kOther[] = {"libm.so.6"};
  EXPECT_FALSE(curl::load(kOther)) << "a library that has none of the functions";
}

// Frames that a server does not take, for want of rights or of the setting, go as they were made.
TEST(Client, CompressesWhatTheServerTakes) {
  const std::string block(10'000, 'x');
  for (const int refused : {0, 40, 115, 164, 452}) {
    std::vector<size_t> sizes;
    LoopbackServer server(versioned([&](const Request& request, int) {
      const bool is_framed = request.query().find("&decompress=1&") != std::string::npos;
      EXPECT_EQ(is_framed ? unpacked_frames(request.body) : request.body, block);
      sizes.push_back(request.body.size());
      if (is_framed && refused != 0)
        return LoopbackServer::reply(500, "Code: " + std::to_string(refused) + ", e.displayText() = no");
      return LoopbackServer::reply(200, "");
    }));
    ClientLimits limits = quick();
    limits.compresses = true;
    auto client = client_of(server, limits);
    ASSERT_TRUE(client) << client.error().message();
    for (int times = 0; times < 2; ++times) {
      const auto inserted = client->insert("INSERT INTO t FORMAT Native", block);
      ASSERT_TRUE(inserted) << inserted.error().message();
      EXPECT_EQ(*inserted, sizes.back());
    }
    EXPECT_LT(sizes.front(), 200U);
    EXPECT_EQ(sizes.size(), refused == 0 ? 2U : 3U) << "asked once, then never again";
    EXPECT_EQ(sizes.back() == block.size(), refused != 0);
  }
}

}  // namespace
}  // namespace lockstep::store::clickhouse
