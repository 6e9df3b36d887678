// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server for a few pages that others GET. It answers one request on each connection and
// closes it. Requests are bounded in size, number and time; where all places are taken, whoever has done
// nothing for longest gives way, so that idle connections keep nobody out. A Host that is neither an IP
// address, nor localhost, nor a name of this machine is refused with a sentence: a page of another site may
// have let its name point here (DNS rebinding).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/kit/interrupt.h"

namespace lockstep::cli::http {

struct Page {
  std::string path;                                          // "/data.json"
  std::string type;                                          // "application/json"
  std::function<std::shared_ptr<const std::string>()> text;  // of the thread that runs; quick
};

struct Served {
  std::vector<Page> pages;
  // Of the machine, as machine_names.h has them; asked where a Host is neither an address nor localhost.
  std::function<const std::vector<std::string>&()> names;
};

class HttpServer {
 public:
  // An IPv4 or IPv6 address, without brackets; port 0: any that is free. `option` is what names another, for
  // the error.
  static Result<HttpServer> listen(const std::string& address, uint16_t port, std::string_view option);
  HttpServer(HttpServer&& other) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  std::string url() const;  // "http://127.0.0.1:8457/"
  // Until the wish to end comes, or half a second after `stop` does; in any thread.
  void run(const Served& served, const Interrupt& interrupt, const std::stop_token& stop = {});

 private:
  HttpServer(int socket, std::string address, uint16_t port)
      : socket_(socket), address_(std::move(address)), port_(port) {}
  int socket_;
  std::string address_;
  uint16_t port_;
};

// What to answer to the head of a request, up to its empty line; where there is no body, the status says why.
struct Answer {
  int status = 200;
  std::string type;
  std::shared_ptr<const std::string> body;
};
Answer answer_to(const std::string& head, const Served& served);

}  // namespace lockstep::cli::http
