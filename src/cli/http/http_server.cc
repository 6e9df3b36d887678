// SPDX-License-Identifier: Apache-2.0
// Serves a few small pages on one thread. Bounded places with the idlest giving way, rather than a thread for
// each connection: forty silent clients must not keep a scrape out (docs/decisions/0011).
#include "cli/http/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "cli/http/machine_names.h"

namespace lockstep::cli::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kHeadMost = 8 << 10;
constexpr size_t kConnectionsMost = 32;
constexpr int kWaitingMost = 128;                       // to be accepted
constexpr auto kHeadTime = std::chrono::seconds(5);     // for the request to come
constexpr auto kAnswerTime = std::chrono::seconds(30);  // between two pieces that the other side takes

// What a page is made of stands in it; all it asks for is data of the same server.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr const char* kNotItsName =
    "This machine does not know that host name as its own. Use its address, or forward the port and use localhost.\n";

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

bool equal_words(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_address(const std::string& text) {
  unsigned char address[sizeof(in6_addr)];
  return inet_pton(AF_INET, text.c_str(), address) == 1 || inet_pton(AF_INET6, text.c_str(), address) == 1;
}

// Without port: "[::1]:80" -> "::1".
std::string host_name(std::string_view host) {
  // A numeric IPv6 address has colons itself, hence the brackets.
  if (host.starts_with('[')) return std::string(host.substr(1, host.find(']') - 1));
  return std::string(host.substr(0, host.find(':')));
}

bool is_trusted_host(std::string_view host, const Served& served) {
  const std::string name = plain_name(host_name(host));
  // A page of another site can point its own name here, but no address and not localhost.
  if (is_address(name) || name == "localhost") return true;
  const std::vector<std::string>& own = served.names();
  return std::find(own.begin(), own.end(), name) != own.end();
}

// The one Host of a request's head; nothing if there is none, or several.
std::optional<std::string_view> host_of(std::string_view head) {
  std::optional<std::string_view> host;
  for (size_t at = head.find("\r\n"); at != std::string_view::npos && at + 2 < head.size();
       at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !equal_words(line.substr(0, colon), "host")) continue;
    // HTTP wants 400 for two Hosts: whoever stands in front may have believed the other one.
    if (host) return std::nullopt;
    host = trimmed(line.substr(colon + 1));
  }
  return host;
}

std::string head_of(const Answer& answer) {
  std::string head =
      "HTTP/1.1 " + std::to_string(answer.status) + ' ' + std::string(status_text(answer.status)) +
      "\r\nConnection: close\r\nContent-Type: " +
      (answer.type.empty() ? "text/plain; charset=utf-8" : answer.type) +
      "\r\nContent-Length: " + std::to_string(answer.body ? answer.body->size() : 0) +
      "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "Content-Security-Policy: " +
      std::string(kPolicy) + "\r\n";
  // HTTP requires it.
  if (answer.status == 405) head += "Allow: GET\r\n";
  return head + "\r\n";
}

struct Connection {
  int socket = -1;
  std::string head;  // of the request; then of the answer
  std::shared_ptr<const std::string> body;
  size_t sent = 0;  // of head and body
  bool answering = false;
  Clock::time_point since =
      Clock::now();  // has it been waited for: for its request, then for it to take a piece
  Clock::time_point until = since + kHeadTime;

  size_t size() const { return head.size() + (body ? body->size() : 0); }
  bool over() const { return socket < 0; }
  void end() {
    close(socket);
    socket = -1;
  }
};

void answer(Connection& connection, const Answer& with) {
  connection.head = head_of(with);
  connection.body = with.body;
  connection.answering = true;
  connection.since = Clock::now();
  connection.until = connection.since + kAnswerTime;
}

void read_from(Connection& connection, const Served& served) {
  char piece[4096];
  const ssize_t got = recv(connection.socket, piece, sizeof piece, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return connection.end();
  connection.head.append(piece, static_cast<size_t>(got));
  const size_t end = connection.head.find("\r\n\r\n");
  // What follows the head is not read: a GET has no body here.
  if (end != std::string::npos && end <= kHeadMost)
    return answer(connection, answer_to(connection.head.substr(0, end + 2), served));
  if (connection.head.size() > kHeadMost) answer(connection, {.status = 431, .type = {}, .body = {}});
}

void write_to(Connection& connection) {
  const bool in_head = connection.sent < connection.head.size();
  const std::string& from = in_head ? connection.head : *connection.body;
  const size_t at = in_head ? connection.sent : connection.sent - connection.head.size();
  // MSG_NOSIGNAL: a client that has gone must not end the program by SIGPIPE.
  const ssize_t sent = send(connection.socket, from.data() + at, from.size() - at, MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (sent <= 0) return connection.end();
  connection.sent += static_cast<size_t>(sent);
  connection.since = Clock::now();
  connection.until = connection.since + kAnswerTime;
  if (connection.sent < connection.size()) return;
  shutdown(connection.socket, SHUT_WR);
  connection.end();
}

void end_longest_waited_for(std::list<Connection>& connections) {
  const auto longest =
      std::min_element(connections.begin(), connections.end(),
                       [](const Connection& a, const Connection& b) { return a.since < b.since; });
  longest->end();
  connections.erase(longest);
}

// Half as many as there are places at most: who has come is read from, and answered, before it gives way.
// False if those who wait cannot be taken in now, as this process may open no more files.
bool accept_all(int listener, std::list<Connection>& connections) {
  for (size_t i = 0; i < kConnectionsMost / 2; ++i) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
    if (connections.size() == kConnectionsMost) end_longest_waited_for(connections);
    connections.emplace_back().socket = socket;
  }
  return true;
}

}  // namespace

Answer answer_to(const std::string& head, const Served& served) {
  const std::string_view line = std::string_view(head).substr(0, head.find("\r\n"));
  const size_t method_end = line.find(' ');
  const size_t target_end =
      method_end == std::string_view::npos ? method_end : line.find(' ', method_end + 1);
  const auto refuse = [](int status) { return Answer{.status = status, .type = {}, .body = {}}; };
  if (target_end == std::string_view::npos || !line.substr(target_end + 1).starts_with("HTTP/1."))
    return refuse(400);
  const auto host = host_of(head);
  if (!host) return refuse(400);
  // Before the path: a foreign page must not learn which pages there are.
  if (!is_trusted_host(*host, served))
    return {.status = 421, .type = {}, .body = std::make_shared<const std::string>(kNotItsName)};
  if (line.substr(0, method_end) != "GET") return refuse(405);
  const std::string_view target = line.substr(method_end + 1, target_end - method_end - 1);
  const std::string_view path = target.substr(0, target.find('?'));
  const auto asked = std::find_if(served.pages.begin(), served.pages.end(),
                                  [&](const Page& page) { return page.path == path; });
  if (asked == served.pages.end()) return refuse(404);
  auto text = asked->text();
  if (!text) return refuse(503);
  return {.status = 200, .type = asked->type, .body = std::move(text)};
}

Result<HttpServer> HttpServer::listen(const std::string& address, uint16_t port, std::string_view option) {
  sockaddr_storage storage{};
  socklen_t length = 0;
  auto* four = reinterpret_cast<sockaddr_in*>(&storage);
  auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
  if (inet_pton(AF_INET, address.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    length = sizeof *four;
  } else if (inet_pton(AF_INET6, address.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    length = sizeof *six;
  } else {
    return usage_error("'" + address + "' is not an IP address");
  }
  const int socket = ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  // Else a restart fails while old connections are in TIME_WAIT.
  if (socket >= 0) (void)setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* name = reinterpret_cast<sockaddr*>(&storage);
  if (socket < 0 || bind(socket, name, length) != 0 || ::listen(socket, kWaitingMost) != 0 ||
      getsockname(socket, name, &length) != 0) {
    const std::string why = std::strerror(errno);
    if (socket >= 0) close(socket);
    return Error{ErrorCode::kIo,
                 "cannot listen on port " + std::to_string(port) + ": " + why + "; name another with " +
                     std::string(option),
                 address};
  }
  return HttpServer(socket, address, ntohs(storage.ss_family == AF_INET ? four->sin_port : six->sin6_port));
}

HttpServer::HttpServer(HttpServer&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), address_(std::move(other.address_)), port_(other.port_) {}

HttpServer::~HttpServer() {
  if (socket_ >= 0) close(socket_);
}

std::string HttpServer::url() const {
  const bool six = address_.find(':') != std::string::npos;
  return "http://" + (six ? "[" + address_ + "]" : address_) + ":" + std::to_string(port_) + "/";
}

void HttpServer::run(const Served& served, const Interrupt& interrupt, const std::stop_token& stop) {
  std::list<Connection> connections;
  bool can_accept = true;
  while (!interrupt.wanted() && !stop.stop_requested()) {
    std::vector<pollfd> waiting = {{interrupt.descriptor(), POLLIN, 0},
                                   // Who waits in vain would wake poll() at once, again and again.
                                   {can_accept ? socket_ : -1, POLLIN, 0}};
    for (const Connection& connection : connections)
      waiting.push_back({connection.socket, static_cast<short>(connection.answering ? POLLOUT : POLLIN), 0});
    // It bounds how long `stop` and the limits of time go unseen.
    constexpr int kTickMs = 500;
    if (poll(waiting.data(), waiting.size(), kTickMs) < 0 && errno != EINTR) return;
    size_t i = 2;
    for (Connection& connection : connections) {
      const short ready = waiting[i++].revents;
      if (ready != 0) connection.answering ? write_to(connection) : read_from(connection, served);
      if (!connection.over() && Clock::now() > connection.until) connection.end();
    }
    // After the loop, which counts connections and poll entries in step; new ones come after that.
    connections.remove_if([](const Connection& connection) { return connection.over(); });
    can_accept = waiting[1].revents == 0 || accept_all(socket_, connections);
  }
  for (Connection& connection : connections) connection.end();
}

}  // namespace lockstep::cli::http
