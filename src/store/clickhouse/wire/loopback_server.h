// SPDX-License-Identifier: Apache-2.0
// A server of HTTP on a port of its own, which does with each request what a test says. One request a
// connection, one after the other.
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace lockstep::store::clickhouse {

class LoopbackServer {
 public:
  struct Request {
    std::string head, body;
    // Of the first line, decoded: "query=SELECT 1".
    std::string query() const {
      const std::string line = head.substr(0, head.find("\r\n"));
      const size_t from = line.find('?');
      std::string text;
      for (size_t i = from; from != line.npos && ++i < line.rfind(' ');) {
        if (line[i] == '%') {
          text += static_cast<char>(std::stoi(line.substr(i + 1, 2), nullptr, 16));
          i += 2;
        } else {
          text += line[i];
        }
      }
      return text;
    }
  };
  // What to answer, byte by byte; nothing: hangs up. `more`, if set, is asked for more until it gives
  // nothing or the other side hangs up.
  struct Reply {
    std::string bytes{};
    std::function<std::string()> more{};
  };
  static Reply reply(int status, const std::string& body) {
    return {"HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\nConnection: close\r\n\r\n" + body,
            {}};
  }
  // Called on the server's thread.
  using Handler = std::function<Reply(const Request&)>;
  // Bytes of a body that are read before it hangs up; all unless a test says less.
  using Appetite = std::function<size_t(const std::string& head)>;

  // Listens when the constructor is done, on a port that the system chooses.
  explicit LoopbackServer(Handler handler, Appetite appetite = {})
      : handler_(std::move(handler)), appetite_(std::move(appetite)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  // Ends the wait for a connection. A request that is being answered is answered to its end.
  ~LoopbackServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }

 private:
  void serve() {
    for (int connection; (connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      answer(connection);
      close(connection);
    }
  }
  void answer(int connection) {
    Request request;
    std::string bytes;
    char piece[65536];
    size_t head = std::string::npos, wanted = 0;
    while (head == std::string::npos || bytes.size() < head + 4 + wanted) {
      const ssize_t got = read(connection, piece, sizeof piece);
      if (got <= 0) return;
      bytes.append(piece, static_cast<size_t>(got));
      if (bytes[0] == 0x16) {  // TLS's hello, which is no line of HTTP
        send_all(connection, "HTTP/1.1 400 Bad Request\r\n\r\n");
        return;
      }
      if (head != std::string::npos || (head = bytes.find("\r\n\r\n")) == std::string::npos) continue;
      request.head = bytes.substr(0, head);
      const size_t length = request.head.find("Content-Length: ");
      wanted =
          length == std::string::npos ? 0 : std::strtoull(request.head.c_str() + length + 16, nullptr, 10);
      if (appetite_ && appetite_(request.head) < wanted) {
        ++requests_;
        return;
      }
    }
    request.body = bytes.substr(head + 4);
    ++requests_;
    const Reply reply = handler_(request);
    // Nothing, which a race detector takes for what it is: the handler's end comes before the other side's.
    if (reply.bytes.empty()) send(connection, "", 0, MSG_NOSIGNAL);
    bool taken = send_all(connection, reply.bytes);
    while (taken && reply.more) {
      const std::string next = reply.more();
      if (next.empty()) break;
      taken = send_all(connection, next);
    }
  }
  // False: the other side has hung up, which a client may do at any moment.
  static bool send_all(int connection, const std::string& bytes) {
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t got = send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (got <= 0) return false;
      sent += static_cast<size_t>(got);
    }
    return true;
  }

  Handler handler_;
  Appetite appetite_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> requests_{0};
  std::thread thread_;
};

}  // namespace lockstep::store::clickhouse
