// SPDX-License-Identifier: Apache-2.0
// Scrapes come on the server's thread while the exporter looks at the run on its own. They share one
// immutable text: a scrape holds the lock for a copy of a pointer, and a slow reader keeps an old text alive
// without stopping the next. Only the age is made for each scrape, as it must grow while the exporter is
// stuck.
#include "exporters/prometheus/served_metrics.h"

#include <arpa/inet.h>

#include <charconv>

#include "exporters/prometheus/exposition.h"

namespace lockstep::exporters::metrics {

void ServedMetrics::set(const std::vector<prometheus::MetricFamily>& families) {
  // Rendered before the lock is taken.
  auto text = std::make_shared<const std::string>(text_of(families));
  const std::lock_guard lock(mutex_);
  text_ = std::move(text);
  set_at_ = Clock::now();
}

std::shared_ptr<const std::string> ServedMetrics::text() const {
  std::shared_ptr<const std::string> text;
  Clock::time_point set_at;
  {
    const std::lock_guard lock(mutex_);
    text = text_;
    set_at = set_at_;
  }
  if (!text) return nullptr;
  const double age = std::chrono::duration<double>(Clock::now() - set_at).count();
  return std::make_shared<const std::string>(*text + text_of({look_age_family(age)}));
}

Result<Address> parse_address(std::string_view text) {
  const Error wrong =
      usage_error("--listen takes a numeric address and a port, such as 127.0.0.1:9464 or [::1]:9464, not '" +
                  std::string(text) + "'");
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong;
  Address address;
  address.host = colon == 0 ? "127.0.0.1" : std::string(text.substr(0, colon));
  const std::string_view port = text.substr(colon + 1);
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size()) return wrong;
  std::string& host = address.host;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    in6_addr ip{};
    if (inet_pton(AF_INET6, host.c_str(), &ip) != 1) return wrong;
    address.loopback = IN6_IS_ADDR_LOOPBACK(&ip);
  } else {
    in_addr ip{};
    if (inet_pton(AF_INET, host.c_str(), &ip) != 1) return wrong;
    address.loopback = (ntohl(ip.s_addr) >> 24) == 127;
  }
  return address;
}

}  // namespace lockstep::exporters::metrics
