// SPDX-License-Identifier: Apache-2.0
// One connection to one server: a POST and its whole answer. TLS, certificates and proxies are libcurl's,
// with its environment variables (https_proxy, no_proxy, SSL_CERT_FILE). Redirects are not followed: the
// headers hold a key.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/clickhouse/wire/address.h"
#include "store/clickhouse/wire/curl_library.h"

namespace lockstep::store::clickhouse {

struct HttpLimits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::seconds stall{60};  // without a byte in either direction
  std::chrono::milliseconds whole{600'000};
  size_t answer_bytes = size_t{8} << 20;
};

struct HttpAnswer {
  int failure = 0;      // curl::Failure; if not kOk, nothing is known of what the server did
  long status = 0;      // 200, ...; 0: no answer
  std::string body;     // cut at HttpLimits::answer_bytes
  bool is_cut = false;  // the server went on behind that
  std::string error;    // of the failure, in words; names no user and no key
};

// One thread.
class HttpClient {
 public:
  // Loads libcurl and connects to nobody yet. kUnsupported: there is no libcurl.
  static Result<HttpClient> open(const Address& address, const HttpLimits& limits);
  // `query`: what stands behind the '?' of the URL, encoded.
  HttpAnswer post(const std::string& query, std::string_view body);

 private:
  HttpClient() = default;

  curl::Library library_;
  HttpLimits limits_;
  std::string base_;
  std::unique_ptr<curl::Handle, curl::Cleanup> handle_;
  std::unique_ptr<curl::List, curl::Free> headers_;
};

}  // namespace lockstep::store::clickhouse
