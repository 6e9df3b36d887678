// SPDX-License-Identifier: Apache-2.0
#include "cli/http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "cli/http/machine_names.h"

namespace lockstep::cli::http {
namespace {

const std::vector<std::string> kNames = names_of_machine("VM", "vm.cluster.local.", {"cluster.example", ""});

auto text(const char* words) {
  return [words] { return std::make_shared<const std::string>(words); };
}

const Served kServed{.pages = {{"/", "text/html; charset=utf-8", text("<p>page</p>")},
                               {"/data.json", "application/json", text("{}")},
                               {"/later", "text/plain", [] { return std::shared_ptr<const std::string>(); }}},
                     .names = []() -> const std::vector<std::string>& { return kNames; }};

int status(const std::string& head) { return answer_to(head, kServed).status; }

TEST(AnswerTo, GivesItsPages) {
  const Answer page = answer_to("GET / HTTP/1.1\r\nHost: 127.0.0.1:8457\r\n", kServed);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(*page.body, "<p>page</p>");
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_EQ(*answer_to("GET /data.json?t=1 HTTP/1.1\r\nhost:localhost\r\n", kServed).body, "{}");
}

TEST(AnswerTo, RefusesOthers) {
  EXPECT_EQ(status("GET /later HTTP/1.1\r\nHost: localhost\r\n"), 503) << "not made yet";
  EXPECT_EQ(status("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\n"), 404);
  EXPECT_EQ(status("GET /../data.json HTTP/1.1\r\nHost: localhost\r\n"), 404);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nHost: localhost\r\n"), 405);
  EXPECT_EQ(status("HEAD / HTTP/1.1\r\nHost: localhost\r\n"), 405);
  EXPECT_EQ(status("GET /\r\nHost: localhost\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\n"), 400) << "no Host";
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n"), 400);
  EXPECT_EQ(status("\r\n"), 400);
  EXPECT_EQ(status(""), 400);
}

TEST(AnswerTo, RefusesNamesThatSomebodyMayHavePointedHere) {
  EXPECT_EQ(status("GET /data.json HTTP/1.1\r\nHost: evil.example:8457\r\n"), 421);
  EXPECT_EQ(status("GET /data.json HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n"), 421);
  EXPECT_EQ(status("GET /data.json HTTP/1.1\r\nHost: localhost.evil.example\r\n"), 421);
  EXPECT_EQ(status("GET /data.json HTTP/1.1\r\nHost:\r\n"), 421);
  EXPECT_EQ(status("GET /data.json HTTP/1.1\r\nHost: [\r\n"), 421);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: [::1]:8457\r\n"), 200);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: LOCALHOST:8457\r\n"), 200);
}

TEST(AnswerTo, KnowsTheMachineByAllOfItsNames) {
  for (const char* own :
       {"vm", "VM:8457", "vm.cluster.local:8457", "vm.cluster.local.", "VM.cluster.example"})
    EXPECT_EQ(status(std::string("GET / HTTP/1.1\r\nHost: ") + own + "\r\n"), 200) << own;
  for (const char* foreign : {"vm.evil.example", "vm.cluster.local.evil.example", "xvm.cluster.local",
                              "cluster.local", "vm..cluster.local", ".", "vm..", "login.cluster.local"})
    EXPECT_EQ(status(std::string("GET / HTTP/1.1\r\nHost: ") + foreign + "\r\n"), 421) << foreign;
  const Answer refused = answer_to("GET / HTTP/1.1\r\nHost: evil.example\r\n", kServed);
  ASSERT_TRUE(refused.body);
  EXPECT_NE(refused.body->find("Use its address"), std::string::npos) << *refused.body;
}

TEST(MachineNames, AreOfItsOwnNameAlone) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of_machine("node7.site.example", "node7.site.example", {"site.example"}),
            (Names{"node7.site.example", "node7"}));
  EXPECT_EQ(names_of_machine("node7", "gateway.site.example", {}), Names{"node7"}) << "an alias of another";
  EXPECT_EQ(names_of_machine("node7", "node77.site.example", {}), Names{"node7"});
  EXPECT_EQ(names_of_machine("", "", {"site.example"}), Names{});
  EXPECT_FALSE(machine_names().empty());
}

// A server on a port of its own, while the test runs.
class Running {
 public:
  explicit Running(const Served& served = kServed)
      : server_(*HttpServer::listen("127.0.0.1", 0, "--listen")) {
    thread_ = std::thread([this, &served] { server_.run(served, interrupt_); });
  }
  ~Running() {
    raise(SIGTERM);
    thread_.join();
  }
  uint16_t port() const {
    const std::string url = server_.url();
    return static_cast<uint16_t>(std::atoi(url.c_str() + url.rfind(':') + 1));
  }
  int connect() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

 private:
  Interrupt interrupt_{Interrupt::Second::kIsNoted};
  HttpServer server_;
  std::thread thread_;
};

std::string rest_of(int socket) {
  std::string text;
  char piece[1024];
  for (ssize_t got = 0; (got = read(socket, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(got));
  close(socket);
  return text;
}

TEST(HttpServer, AnswersOverASocketAndEndsWithASignal) {
  const Running running;
  const int socket = running.connect();
  const std::string request = "GET /data.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
  // In two pieces, as a slow network has it.
  ASSERT_EQ(write(socket, request.data(), 10), 10);
  ASSERT_EQ(write(socket, request.data() + 10, request.size() - 10),
            static_cast<ssize_t>(request.size() - 10));
  const std::string answer = rest_of(socket);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Length: 2\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("frame-ancestors 'none'"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n{}")) << answer;
}

TEST(HttpServer, EndsARequestWithoutEnd) {
  const Running running;
  const int socket = running.connect();
  const std::string much = "GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x');
  (void)send(socket, much.data(), much.size(), MSG_NOSIGNAL);
  const std::string answer = rest_of(socket);
  EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 431")) << answer;
}

TEST(HttpServer, MoreThanItHoldsWhoSayNothingKeepNobodyOut) {
  const Running running;
  std::vector<int> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(running.connect());
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (int ask = 0; ask < 6; ++ask) {
    const int socket = running.connect();
    ASSERT_EQ(write(socket, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    EXPECT_NE(rest_of(socket).find("<p>page</p>"), std::string::npos);
  }
  // The first has given way; the last is still waited for, and answered.
  EXPECT_EQ(rest_of(silent.front()), "");
  ASSERT_EQ(write(silent.back(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  EXPECT_NE(rest_of(silent.back()).find("<p>page</p>"), std::string::npos);
  for (size_t i = 1; i + 1 < silent.size(); ++i) close(silent[i]);
}

TEST(HttpServer, WhoDoesNotTakeItsAnswerGivesWayToo) {
  const Served served{
      .pages = {{"/", "text/plain",
                 [much = std::make_shared<const std::string>(8 << 20, 'x')] { return much; }}},
      .names = kServed.names};
  const Running running(served);
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<int> slow;
  for (int i = 0; i < 40; ++i) {
    slow.push_back(running.connect());
    ASSERT_EQ(write(slow.back(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
  }
  const int socket = running.connect();
  ASSERT_EQ(write(socket, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  EXPECT_GT(rest_of(socket).size(), size_t{8} << 20);
  for (int one : slow) close(one);
}

TEST(HttpServer, ListensOnAddressesAlone) {
  EXPECT_FALSE(HttpServer::listen("localhost", 0, ""));
  EXPECT_FALSE(HttpServer::listen("", 0, ""));
  auto six = HttpServer::listen("::1", 0, "");
  if (six) {
    EXPECT_TRUE(six->url().starts_with("http://[::1]:"));
  }
  auto one = HttpServer::listen("127.0.0.1", 0, "");
  ASSERT_TRUE(one);
  const std::string url = one->url();
  auto two = HttpServer::listen(
      "127.0.0.1", static_cast<uint16_t>(std::atoi(url.c_str() + url.rfind(':') + 1)), "--serve=PORT");
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message().find("--serve=PORT"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::cli::http
