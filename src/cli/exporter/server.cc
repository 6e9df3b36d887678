// SPDX-License-Identifier: Apache-2.0
#include "cli/exporter/server.h"

#include <arpa/inet.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <charconv>
#include <chrono>
#include <mutex>

#include "cli/exporter/exposition.h"

namespace lockstep::cli::exporter {
namespace {

using prometheus::MetricFamily;

class Latest : public prometheus::Collectable {
 public:
  void set(std::vector<MetricFamily> families) {
    auto shared = std::make_shared<const std::vector<MetricFamily>>(std::move(families));
    std::lock_guard lock(mutex_);
    families_ = std::move(shared);
    set_at_ = Clock::now();
  }
  std::vector<MetricFamily> Collect() const override {
    std::shared_ptr<const std::vector<MetricFamily>> families;
    Clock::time_point set_at;
    {
      std::lock_guard lock(mutex_);
      families = families_;
      set_at = set_at_;
    }
    if (!families) return {};
    std::vector<MetricFamily> all = *families;
    all.push_back(look_age_family(std::chrono::duration<double>(Clock::now() - set_at).count()));
    return all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  mutable std::mutex mutex_;
  std::shared_ptr<const std::vector<MetricFamily>> families_;
  Clock::time_point set_at_;
};

class ExposerServer : public Server {
 public:
  explicit ExposerServer(const Address& address)
      : host_(address.host),
        latest_(std::make_shared<Latest>()),
        exposer_(std::vector<std::string>{"listening_ports",
                                          address.host + ":" + std::to_string(address.port),  //
                                          "num_threads", "2",                                 //
                                          "connection_queue", "16",                           //
                                          "listen_backlog", "16",                             //
                                          "max_request_size", "8192",                         //
                                          "request_timeout_ms", "5000",                       //
                                          "enable_keep_alive", "no"}) {
    exposer_.RegisterCollectable(latest_);
  }
  std::string address() const override {
    const std::vector<int> ports = exposer_.GetListeningPorts();
    return host_ + ":" + std::to_string(ports.empty() ? 0 : ports.front());
  }
  void publish(std::vector<MetricFamily> families) override { latest_->set(std::move(families)); }

 private:
  std::string host_;
  std::shared_ptr<Latest> latest_;
  prometheus::Exposer exposer_;
};

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const Error wrong{
      ErrorCode::kUsage,
      "--listen takes a numeric address and a port, such as 127.0.0.1:9464 or [::1]:9464, not '" +
          std::string(text) + "'",
      {}};
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  Address address;
  address.host = colon == 0 ? "127.0.0.1" : std::string(text.substr(0, colon));
  const std::string_view port = text.substr(colon + 1);
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size()) return wrong;
  const std::string& host = address.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    in6_addr ip{};
    if (inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &ip) != 1) return wrong;
    address.loopback = IN6_IS_ADDR_LOOPBACK(&ip);
  } else {
    in_addr ip{};
    if (inet_pton(AF_INET, host.c_str(), &ip) != 1) return wrong;
    address.loopback = (ntohl(ip.s_addr) >> 24) == 127;
  }
  return address;
}

Result<std::unique_ptr<Server>> Server::start(const Address& address) {
  // The library throws what it has to say.
  try {
    return std::unique_ptr<Server>(std::make_unique<ExposerServer>(address));
  } catch (const std::exception&) {
    return Error{ErrorCode::kIo,
                 "cannot listen there: the port is taken, or the address is not this machine's; --listen "
                 "names another",
                 address.host + ":" + std::to_string(address.port)};
  }
}

}  // namespace lockstep::cli::exporter
