// SPDX-License-Identifier: Apache-2.0
// The border of the C API. Exceptions stop here and become an error text, and every text goes out as memory
// of malloc, so that callers of any language and any C++ library can use it. A run is no more than its paths:
// each call reads them anew, so that a call on a running job says how things are now.
#include "lockstep/diagnose.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "base/unix_time.h"
#include "library/arrow_stream.h"
#include "report/diagnosis_json.h"
#include "report/page.h"
#include "report/report_data.h"
#include "verdict/diagnosed_run.h"

using namespace lockstep;

struct lockstep_run {
  std::vector<std::string> paths;
};

namespace {

// Texts of ours may hold no 0 but the last; a caller reads to the first one.
void give(const std::string& text, char** out) noexcept {
  if (out == nullptr) return;
  *out = static_cast<char*>(std::malloc(text.size() + 1));
  if (*out != nullptr) std::memcpy(*out, text.c_str(), text.size() + 1);
}
void give_words(const char* words, char** out) noexcept {
  if (out != nullptr) *out = strdup(words);
}

// Runs `work`, which returns a code or an Error; no exception leaves it.
template <class Work>
int guarded(char** error, Work&& work) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    Result<int> done = work();
    if (done) return *done;
    give(done.error().message(), error);
  } catch (const std::bad_alloc&) {
    give_words("no memory left", error);
  } catch (const std::exception& failed) {
    give_words(failed.what(), error);
  } catch (...) {
    give_words("failed for an unknown reason", error);
  }
  return LOCKSTEP_FAILED;
}

std::string table_names() {
  std::string names;
  for (const auto& table : exporters::common::run_tables())
    names += (names.empty() ? "" : ", ") + std::string(table.name);
  return names;
}

}  // namespace

const char* lockstep_version(void) { return LOCKSTEP_VERSION; }

lockstep_run* lockstep_open(const char* const* paths, size_t count, char** error) {
  lockstep_run* run = nullptr;
  guarded(error, [&]() -> Result<int> {
    if (paths == nullptr || count == 0) return usage_error("name at least one path");
    auto made = std::make_unique<lockstep_run>();
    for (size_t i = 0; i < count; ++i) {
      if (paths[i] == nullptr || *paths[i] == '\0') return usage_error("a path is empty");
      made->paths.emplace_back(paths[i]);
    }
    run = made.release();
    return LOCKSTEP_HEALTHY;
  });
  return run;
}

void lockstep_close(lockstep_run* run) { delete run; }

int lockstep_diagnose(lockstep_run* run, char** json, char** error) {
  return guarded(error, [&]() -> Result<int> {
    if (run == nullptr || json == nullptr) return usage_error("a run and a place for the text are needed");
    // Before the work: whoever frees the text after a failure frees nothing.
    *json = nullptr;
    LOCKSTEP_ASSIGN(const auto diagnosed, verdict::diagnose(run->paths, [](double) {}));
    give(json_text(report::diagnosis_json(diagnosed)), json);
    // give() throws nothing and says by this that there was no room.
    if (*json == nullptr) throw std::bad_alloc();
    return verdict::exit_code(diagnosed.diagnosis);
  });
}

int lockstep_report(lockstep_run* run, char** html, char** error) {
  return guarded(error, [&]() -> Result<int> {
    if (run == nullptr || html == nullptr) return usage_error("a run and a place for the page are needed");
    *html = nullptr;
    if (!report::page_absent_because().empty())
      return Error{ErrorCode::kUnsupported, std::string(report::page_absent_because()), {}};
    LOCKSTEP_ASSIGN(const auto diagnosed, verdict::diagnose(run->paths, [](double) {}));
    LOCKSTEP_ASSIGN(const std::string page,
                    report::page_with(report::built_page(),
                                      report::report_data(diagnosed, {.paths = run->paths,
                                                                      .made_ns = unix_now_ns(),
                                                                      .refresh_ns = std::nullopt})));
    give(page, html);
    if (*html == nullptr) throw std::bad_alloc();
    return LOCKSTEP_HEALTHY;
  });
}

int lockstep_table(lockstep_run* run, const char* table, ArrowArrayStream* stream, char** error) {
  return guarded(error, [&]() -> Result<int> {
    if (run == nullptr || table == nullptr || stream == nullptr)
      return usage_error("a run, the name of a table and a stream are needed");
    // Before the work: a stream that was not opened reads as released.
    stream->release = nullptr;
    for (const auto& layout : exporters::common::run_tables()) {
      if (layout.name != table) continue;
      LOCKSTEP_ASSIGN(auto input, input::open_input(run->paths));
      library::open_stream(std::move(input), layout, stream);
      return LOCKSTEP_HEALTHY;
    }
    return usage_error("no table is called '" + std::string(table) + "'; there are: " + table_names());
  });
}

void lockstep_free(char* text) { std::free(text); }
