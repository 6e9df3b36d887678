// SPDX-License-Identifier: Apache-2.0
// The kernel writes as many values as the driver has at that moment, whatever room it is told of, and drivers
// have more once somebody gives them more queues. So the buffers hold many times what any driver has, and the
// number is asked before each reading.
#include "links/samples/interface_counters.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

namespace lockstep::links {
namespace {

// A card of 128 queues has about 10,000. Room is for so many times what a driver says that it has.
constexpr size_t kMostOfInterface = 65'536, kMostAsked = 256, kRoom = 8;

// Faults, and a host that takes data too slowly (judge/counter_rules.def).
constexpr std::string_view kWanted[] = {
    "link_down_events_phy", "module_unplug",   "rx_crc_errors_phy", "rx_symbol_err_phy",
    "tx_discards_phy",      "rx_discards_phy", "rx_out_of_buffer",  "tx_pause_storm_error_events"};

// Closed with the last copy of the question that holds it.
struct Socket {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

InterfaceCounters::Ask InterfaceCounters::of_this_host() {
  return [socket = std::make_shared<Socket>()](const std::string& interface, void* command) {
    ifreq request{};
    if (socket->fd < 0 || interface.size() >= sizeof request.ifr_name) return false;
    std::memcpy(request.ifr_name, interface.data(), interface.size());
    request.ifr_data = static_cast<char*>(command);
    return ioctl(socket->fd, SIOCETHTOOL, &request) == 0;
  };
}

InterfaceCounters::InterfaceCounters(const std::vector<std::string>& interfaces, Ask ask)
    : ask_(std::move(ask)) {
  for (const std::string& name : interfaces) {
    if (interfaces_.size() >= kMostAsked) return;
    Interface interface {
      name, names_of(name), {}
    };
    for (const std::string_view wanted : kWanted) {
      if (std::find(interface.statistics.begin(), interface.statistics.end(), wanted) ==
          interface.statistics.end())
        continue;
      interface.wanted.emplace(wanted, keys_.size());
      keys_.push_back({DeviceKind::kNetDevice, name, std::string(wanted)});
    }
    if (!interface.wanted.empty()) interfaces_.push_back(std::move(interface));
  }
}

std::optional<uint32_t> InterfaceCounters::count_of(const std::string& interface) const {
  alignas(ethtool_sset_info) char room[sizeof(ethtool_sset_info) + sizeof(uint32_t)]{};
  auto* const info = new (room) ethtool_sset_info;
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = uint64_t{1} << ETH_SS_STATS;
  if (!ask_(interface, info) || info->sset_mask == 0) return std::nullopt;
  uint32_t count = 0;
  std::memcpy(&count, room + sizeof(ethtool_sset_info), sizeof count);
  return count > 0 && count <= kMostOfInterface ? std::optional(count) : std::nullopt;
}

std::vector<std::string> InterfaceCounters::names_of(const std::string& interface) const {
  const auto count = count_of(interface);
  if (!count) return {};
  std::vector<char> room(sizeof(ethtool_gstrings) + size_t{*count} * kRoom * ETH_GSTRING_LEN);
  auto* const strings = new (room.data()) ethtool_gstrings;
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = *count;
  if (!ask_(interface, strings) || strings->len != *count) return {};
  std::vector<std::string> names;
  for (uint32_t i = 0; i < *count; ++i) {
    const char* const name = room.data() + sizeof(ethtool_gstrings) + size_t{i} * ETH_GSTRING_LEN;
    names.emplace_back(name, strnlen(name, ETH_GSTRING_LEN));
  }
  return names;
}

void InterfaceCounters::read(const Visit& visit) {
  for (Interface& interface : interfaces_) {
    const auto count = count_of(interface.name);
    if (count && *count != interface.statistics.size()) interface.statistics = names_of(interface.name);
    buffer_.resize(sizeof(ethtool_stats) / sizeof(uint64_t) + size_t{count.value_or(0)} * kRoom);
    auto* const head = new (buffer_.data()) ethtool_stats;
    head->cmd = ETHTOOL_GSTATS;
    head->n_stats = count.value_or(0);
    // Between the two calls it may have changed: then no value is known to be which.
    const bool is_read = count && *count == interface.statistics.size() && ask_(interface.name, head) &&
                         head->n_stats == *count;
    const uint64_t* const values = buffer_.data() + sizeof(ethtool_stats) / sizeof(uint64_t);
    for (const auto& [name, number] : interface.wanted) {
      const auto at = std::find(interface.statistics.begin(), interface.statistics.end(), name);
      const bool is_known = is_read && at != interface.statistics.end();
      visit(number, is_known ? std::optional(values[at - interface.statistics.begin()]) : std::nullopt);
    }
  }
}

}  // namespace lockstep::links
