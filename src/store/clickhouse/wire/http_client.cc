// SPDX-License-Identifier: Apache-2.0
// One POST and its whole answer. The handle is kept, as libcurl keeps its connection and TLS session with it:
// a push sends many statements. Options are set for each request, since the pointers among them are to this
// request's memory. The answer is bounded, as the other side may be anything.
#include "store/clickhouse/wire/http_client.h"

namespace lockstep::store::clickhouse {
namespace {

// Fewer bytes a second than this over HttpLimits::stall is no progress.
constexpr long kStalledBytes = 1;

struct Receiver {
  HttpAnswer* answer;
  size_t most;
};
size_t receive(const char* bytes, size_t size, size_t count, void* to) {
  const Receiver& receiver = *static_cast<const Receiver*>(to);
  std::string& body = receiver.answer->body;
  const size_t got = size * count, room = receiver.most - body.size();
  body.append(bytes, std::min(got, room));
  receiver.answer->is_cut = got > room;
  return got > room ? 0 : got;  // other than `got`: libcurl hangs up
}

}  // namespace

Result<HttpClient> HttpClient::open(const Address& address, const HttpLimits& limits) {
  HttpClient client;
  LOCKSTEP_ASSIGN(client.library_, curl::load());
  client.limits_ = limits;
  client.base_ = address.base;
  const curl::Library& library = client.library_;
  client.handle_ = {library.easy_init(), {library.easy_cleanup}};
  if (client.handle_ == nullptr) return Error{ErrorCode::kIo, "libcurl could not start", {}};
  curl::List* headers = nullptr;
  const auto add = [&](const std::string& line) { headers = library.slist_append(headers, line.c_str()); };
  add("Expect:");  // else a server that does not know it costs a second a request
  add("Content-Type: application/octet-stream");
  if (!address.user.empty()) add("X-ClickHouse-User: " + address.user);
  if (!address.key.empty()) add("X-ClickHouse-Key: " + address.key);
  // User and key go in the head: URLs end up in the logs of servers and proxies.
  client.headers_ = {headers, {library.slist_free_all}};
  return client;
}

HttpAnswer HttpClient::post(const std::string& query, std::string_view body) {
  HttpAnswer answer;
  const Receiver receiver{&answer, limits_.answer_bytes};
  const std::string url = base_ + (query.empty() ? "" : "?") + query;
  char error[curl::kErrorBytes] = {};
  curl::Handle* const handle = handle_.get();
  const auto set = [&](curl::Option option, auto value) { library_.easy_setopt(handle, option, value); };
  set(curl::kUrl, url.c_str());
  set(curl::kHttpHeader, headers_.get());
  set(curl::kPostFields, body.data());
  // A block holds NULs: without its size libcurl would take it for a C string.
  set(curl::kPostFieldSizeLarge, static_cast<int64_t>(body.size()));
  set(curl::kWriteFunction, &receive);
  set(curl::kWriteData, &receiver);
  set(curl::kErrorBuffer, static_cast<char*>(error));
  set(curl::kUserAgent, "lockstep");
  // libcurl must not use signals for its timeouts in a program with threads.
  set(curl::kNoSignal, 1L);
  // A URL must never make it read a file or speak another protocol.
  set(curl::kProtocols, curl::kHttpAndHttps);
  set(curl::kConnectTimeoutMs, static_cast<long>(limits_.connect.count()));
  set(curl::kTimeoutMs, static_cast<long>(limits_.whole.count()));
  set(curl::kLowSpeedLimit, kStalledBytes);
  set(curl::kLowSpeedTime, static_cast<long>(limits_.stall.count()));
  answer.failure = library_.easy_perform(handle);
  library_.easy_getinfo(handle, curl::kResponseCode, &answer.status);
  if (answer.failure != curl::kOk)
    answer.error = error[0] != '\0' ? error : library_.easy_strerror(answer.failure);
  // The buffer ends with this call, and the handle does not.
  library_.easy_setopt(handle, curl::kErrorBuffer, static_cast<char*>(nullptr));
  return answer;
}

}  // namespace lockstep::store::clickhouse
