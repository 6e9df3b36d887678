// SPDX-License-Identifier: Apache-2.0
// libcurl, loaded when it is wanted: programs that are linked statically have TLS, certificates and proxies
// of the machine that way, and no build needs its headers. The numbers and signatures are those of its
// interface, which has not changed since libcurl.so.4 (2006).
#pragma once
#include <cstddef>
#include <span>

#include "base/result.h"

namespace lockstep::store::clickhouse::curl {

using Handle = void;
struct List;  // of headers

// Numbers of CURLoption: the thousands say the type of the value (0 long, 10000 pointer, 20000 function,
// 30000 64 bits).
enum Option : int {
  kWriteData = 10001,
  kUrl = 10002,
  kErrorBuffer = 10010,
  kPostFields = 10015,
  kUserAgent = 10018,
  kLowSpeedLimit = 19,  // bytes/s
  kLowSpeedTime = 20,   // s
  kHttpHeader = 10023,
  kNoSignal = 99,
  kConnectTimeoutMs = 156,
  kTimeoutMs = 155,
  kProtocols = 181,
  kWriteFunction = 20011,
  kPostFieldSizeLarge = 30120,  // int64_t
};
inline constexpr int kResponseCode = 0x200002;  // curl_easy_getinfo: long
inline constexpr long kHttpAndHttps = 3;        // of kProtocols
inline constexpr size_t kErrorBytes = 256;      // of kErrorBuffer

// Results of curl_easy_perform; all others are as final as an answer that says no.
enum Failure : int {
  kOk = 0,
  kUnknownProxy = 5,
  kUnknownHost = 6,
  kCannotConnect = 7,
  kPartial = 18,
  kWriteError = 23,
  kTimedOut = 28,
  kNothing = 52,
  kSendError = 55,
  kReceiveError = 56,
};

// Valid as long as the program runs. Any thread.
struct Library {
  Handle* (*easy_init)() = nullptr;
  void (*easy_cleanup)(Handle*) = nullptr;
  // Variadic as in libcurl's header: values must have exactly the type that the option takes.
  int (*easy_setopt)(Handle*, int option, ...) = nullptr;
  int (*easy_perform)(Handle*) = nullptr;
  int (*easy_getinfo)(Handle*, int info, ...) = nullptr;
  const char* (*easy_strerror)(int) = nullptr;
  List* (*slist_append)(List*, const char*) = nullptr;
  void (*slist_free_all)(List*) = nullptr;
};

// For std::unique_ptr.
struct Cleanup {
  void (*cleanup)(Handle*) = nullptr;
  void operator()(Handle* handle) const { cleanup(handle); }
};
struct Free {
  void (*free)(List*) = nullptr;
  void operator()(List* list) const { free(list); }
};

// The first of these that the loader finds. kUnsupported: none, with what would change that.
Result<Library> load(std::span<const char* const> names);
Result<Library> load();

}  // namespace lockstep::store::clickhouse::curl
