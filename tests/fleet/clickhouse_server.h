// SPDX-License-Identifier: Apache-2.0
// A real clickhouse-server on a port of its own, its data in a temporary folder; `ann` has the password
// "right". It may be killed and started again.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

class ClickHouseServer {
 public:
  // Empty if there is none.
  static std::string program() {
    std::istringstream folders(std::getenv("PATH") != nullptr ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
      const std::string path = folder + "/clickhouse-server";
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
    return {};
  }

  ClickHouseServer() : port_(free_port()) {
    write_file(folder_ / "config.xml",
               "<yandex><logger><level>none</level></logger><listen_host>127.0.0.1</listen_host><http_port>" +
                   std::to_string(port_) + "</http_port><path>" + (folder_ / "data/") + "</path><tmp_path>" +
                   (folder_ / "tmp/") + "</tmp_path><users_config>" + (folder_ / "users.xml") +
                   "</users_config><default_profile>default</default_profile><default_database>default"
                   "</default_database><mark_cache_size>5368709</mark_cache_size></yandex>");
    const std::string rest =
        "<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>";
    write_file(folder_ / "users.xml",
               "<yandex><profiles><default><max_threads>2</max_threads></default></profiles><users><default>"
               "<password></password>" +
                   rest + "</default><ann><password>right</password>" + rest +
                   "</ann></users><quotas><default/></quotas></yandex>");
    start();
  }
  // Returns when it answers. `before`: what a shell does first, such as setting limits.
  void start(const std::string& before = "") {
    // Unpacked packages have their libraries beside them.
    const std::string root = program().substr(0, program().rfind("/usr/"));
    std::string libraries;
    for (const char* folder : {"x86_64-linux-gnu", "aarch64-linux-gnu"})
      libraries += (libraries.empty() ? "" : ":") + root + "/usr/lib/" + folder;
    process_ = std::make_unique<Process>(
        std::vector<std::string>{"sh", "-c", before + "exec \"$0\" \"$1\"", program(),
                                 "--config-file=" + (folder_ / "config.xml")},
        Surroundings{.folder = folder_.path(), .environment = {{"LD_LIBRARY_PATH", libraries}}, .input = ""});
    EXPECT_TRUE(
        wait_until([&] { return exchange("GET /ping HTTP/1.0\r\n\r\n").find("Ok.") != std::string::npos; }));
  }
  void kill() {
    ::kill(process_->pid(), SIGKILL);
    process_->wait();
  }

  uint16_t port() const { return port_; }
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  // Sends bytes and returns all that comes back until the server hangs up.
  std::string exchange(const std::string& bytes) const {
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port_);
    std::string answer;
    if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      size_t sent = 0;
      for (ssize_t got; sent < bytes.size(); sent += static_cast<size_t>(got)) {
        got = send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (got <= 0) break;
      }
      char piece[65536];
      for (ssize_t got; (got = recv(connection, piece, sizeof piece, 0)) > 0;)
        answer.append(piece, static_cast<size_t>(got));
    }
    close(connection);
    return answer;
  }

 private:
  static sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static uint16_t free_port() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    close(listener);
    return ntohs(address.sin_port);
  }

  const TemporaryFolder folder_;
  const uint16_t port_;
  std::unique_ptr<Process> process_;
};

#define NEED_CLICKHOUSE()                  \
  if (ClickHouseServer::program().empty()) \
  GTEST_SKIP() << "clickhouse-server is not installed: tools/setup --test"

}  // namespace lockstep::test
