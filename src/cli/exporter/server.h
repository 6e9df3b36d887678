// SPDX-License-Identifier: Apache-2.0
// Serves /metrics over HTTP. prometheus-cpp's exposer with few threads, short requests and short waits; the families are
// handed over by one thread and serialised by the server's own.
#pragma once
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::cli::exporter {

struct Address {
  std::string host;   // numeric; IPv6 in brackets
  uint16_t port = 0;  // 0: any that is free
  bool loopback = false;
};
// "127.0.0.1:9464", "[::1]:0", ":9464" (this machine only).
Result<Address> parse_address(std::string_view text);

class Server {
 public:
  // Listens from here on; scrapes find nothing until the first publish().
  static Result<std::unique_ptr<Server>> start(const Address& address);
  virtual ~Server() = default;
  // Where it listens: "127.0.0.1:40123".
  virtual std::string address() const = 0;
  // What scrapes get from now on; they add how long ago that was.
  virtual void publish(std::vector<prometheus::MetricFamily> families) = 0;
};

}  // namespace lockstep::cli::exporter
