// SPDX-License-Identifier: Apache-2.0
// Which names a request may use for this machine: its own and those that its resolver's settings make of it.
// Whatever resolves to it is not enough, since anybody can let a name of theirs point here.
#include "cli/http/machine_names.h"

#include <netdb.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::cli::http {
namespace {

std::string own_name() {
  char own[256] = {};
  return gethostname(own, sizeof own - 1) == 0 ? own : "";
}

std::string canonical_name(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_flags = AI_CANONNAME;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (host.empty() || getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return "";
  std::string name = found->ai_canonname == nullptr ? "" : found->ai_canonname;
  freeaddrinfo(found);
  return name;
}

// A state of its own, so that look-ups of the program are left alone.
std::vector<std::string> search_domains() {
  std::vector<std::string> domains;
  struct __res_state state {};
  if (res_ninit(&state) != 0) return domains;
  for (char** domain = state.dnsrch; domain < state.dnsrch + MAXDNSRCH && *domain != nullptr; ++domain)
    domains.emplace_back(*domain);
  res_nclose(&state);
  return domains;
}

}  // namespace

std::string plain_name(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (name.ends_with('.')) name.pop_back();
  return name;
}

std::vector<std::string> names_of_machine(const std::string& host, const std::string& canonical,
                                          const std::vector<std::string>& domains) {
  std::vector<std::string> names;
  const std::string own = plain_name(host), first = own.substr(0, own.find('.'));
  // Without a name nothing would stand before the domains.
  if (first.empty()) return names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  add(own);
  add(first);
  // An alias may lead to a name that is another machine's, too.
  const std::string full = plain_name(canonical);
  if (full.starts_with(first + ".")) add(full);
  for (const std::string& domain : domains) {
    const std::string plain = plain_name(domain);
    if (!plain.empty()) add(first + "." + plain);
  }
  return names;
}

const std::vector<std::string>& machine_names() {
  // Once, as the resolver may take seconds and the server has one thread.
  static const std::vector<std::string> names = [] {
    const std::string host = own_name();
    return names_of_machine(host, canonical_name(host), search_domains());
  }();
  return names;
}

}  // namespace lockstep::cli::http
