// SPDX-License-Identifier: Apache-2.0
// The files of a run that a tool left one by one: read on all cores, and what cannot be read put aside.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/result.h"

namespace lockstep::readers::common {

template <class File>
struct ReadFiles {
  std::vector<File> files;             // in the order of their paths; at least one
  std::vector<std::string> bad_files;  // the errors of the others
  std::string name;                    // of the run: its one path, else "8 Flight Recorder dumps"
};

// `read` makes a Result<File> of a path; it is called on several threads at once. `what`: what the files are
// called. If no file can be read, the first one's error.
template <class Read, class File = std::decay_t<decltype(*std::declval<Read>()(std::string()))>>
Result<ReadFiles<File>> read_all(std::vector<std::string> paths, std::string_view what, const Read& read) {
  std::vector<std::optional<Result<File>>> results(paths.size());
  for_each_parallel(paths.size(), parallel_threads(), [&](size_t i) { results[i] = read(paths[i]); });
  ReadFiles<File> all;
  const Error* first_error = nullptr;
  for (auto& result : results) {
    if (*result) {
      all.files.push_back(std::move(**result));
    } else {
      if (first_error == nullptr) first_error = &result->error();
      all.bad_files.push_back(result->error().message());
    }
  }
  if (all.files.empty()) {
    return first_error != nullptr ? *first_error : Error{ErrorCode::kNotFound, "no " + std::string(what), {}};
  }
  all.name =
      paths.size() == 1 ? std::move(paths.front()) : std::to_string(paths.size()) + ' ' + std::string(what);
  return all;
}

}  // namespace lockstep::readers::common
