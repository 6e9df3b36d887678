// SPDX-License-Identifier: Apache-2.0
// A small grammar instead of a URL library: what is accepted fits into one line (no_url). A user's key may
// stand in the URL, so no error repeats any of it. Only scheme and host are ever shown (Address::base).
// Control characters are refused everywhere, also where they were percent-encoded, since user and key become
// lines of the HTTP head.
#include "store/clickhouse/wire/address.h"

#include <algorithm>
#include <optional>

namespace lockstep::store::clickhouse {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded += static_cast<char>(*high << 4 | *low);
    i += 2;
  }
  return decoded;
}

// "host", "host:8123", "[::1]:8123": what has other characters is no name of a host.
bool is_host(std::string_view text) {
  const auto is_of_host = [](char c) { return is_plain(c) || c == ':' || c == '[' || c == ']'; };
  return !text.empty() && text.front() != ':' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), is_of_host);
}

Error no_url(const char* what) {
  return usage_error(std::string(what) +
                     "; a store is named as http://HOST:8123/DATABASE or https://USER@HOST:8443/DATABASE");
}

}  // namespace

Result<Address> parse_address(std::string_view url) {
  if (has_control(url)) return no_url("the URL has control characters");
  std::string_view scheme;
  for (const std::string_view known : {"http://", "https://"})
    if (url.starts_with(known)) scheme = known;
  if (scheme.empty()) return no_url("the URL begins with neither http:// nor https://");
  std::string_view rest = url.substr(scheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view host = rest.substr(0, slash);
  std::string_view database = rest.substr(std::min(slash + 1, rest.size()));
  while (database.ends_with('/')) database.remove_suffix(1);
  Address address;
  // The last @: a key may hold one that was not encoded.
  if (const size_t at = host.rfind('@'); at != host.npos) {
    const std::string_view login = host.substr(0, at);
    host.remove_prefix(at + 1);
    const size_t colon = std::min(login.find(':'), login.size());
    const auto user = percent_decoded(login.substr(0, colon));
    const auto key = percent_decoded(login.substr(std::min(colon + 1, login.size())));
    if (!user || !key || has_control(*user) || has_control(*key))
      return no_url("the URL's user or key is not percent-encoded text");
    address.user = *user;
    address.key = *key;
  }
  if (!is_host(host)) return no_url("the URL names no host");
  if (database.find_first_of("/?#") != database.npos)
    return no_url("the URL has more than a database after the host");
  const auto name = percent_decoded(database);
  if (!name || has_control(*name)) return no_url("the URL's database is not percent-encoded text");
  address.base = std::string(scheme) + std::string(host) + "/";
  address.database = name->empty() ? "fleet" : *name;
  return address;
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string percent_encoded(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_plain(c)) {
      encoded += c;
      continue;
    }
    encoded += '%';
    encoded += kDigits[static_cast<unsigned char>(c) >> 4];
    encoded += kDigits[c & 15];
  }
  return encoded;
}

}  // namespace lockstep::store::clickhouse
