// SPDX-License-Identifier: Apache-2.0
// Loaded at run time, so that the program starts where libcurl is not installed and only a push misses it.
// The handle is never closed: the library may have threads and TLS state of its own, which outlive any object
// here.
#include "store/clickhouse/wire/curl_library.h"

#include <dlfcn.h>

namespace lockstep::store::clickhouse::curl {
namespace {

// Debian has the same interface once more, over GnuTLS.
constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
constexpr long kGlobalAll = 3;

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Result<Library> load(std::span<const char* const> names) {
  const Error missing{ErrorCode::kUnsupported,
                      "libcurl.so.4, which talks to the store, is not installed (Debian, Ubuntu: libcurl4; "
                      "Fedora, RHEL: libcurl)",
                      {}};
  for (const char* name : names) {
    void* const opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) continue;
    Library library;
    int (*global_init)(long) = nullptr;
    const bool is_whole = find(opened, "curl_global_init", global_init) &&
                          find(opened, "curl_easy_init", library.easy_init) &&
                          find(opened, "curl_easy_cleanup", library.easy_cleanup) &&
                          find(opened, "curl_easy_setopt", library.easy_setopt) &&
                          find(opened, "curl_easy_perform", library.easy_perform) &&
                          find(opened, "curl_easy_getinfo", library.easy_getinfo) &&
                          find(opened, "curl_easy_strerror", library.easy_strerror) &&
                          find(opened, "curl_slist_append", library.slist_append) &&
                          find(opened, "curl_slist_free_all", library.slist_free_all);
    // Counted by libcurl itself, so calling it for every load does no harm.
    if (is_whole && global_init(kGlobalAll) == kOk) return library;
  }
  return missing;
}

Result<Library> load() { return load(kNames); }

}  // namespace lockstep::store::clickhouse::curl
