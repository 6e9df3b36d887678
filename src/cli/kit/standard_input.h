// SPDX-License-Identifier: Apache-2.0
// What is piped into the program, as a file: `pbpaste | lockstep diagnose -`.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/temporary_directory.h"

namespace lockstep::cli {

class StandardInput {
 public:
  // All of it, up to its end; an error beyond 4 GiB.
  static Result<StandardInput> read();
  // `paths` with the file in place of "-".
  std::vector<std::string> in_place_of_dash(std::vector<std::string> paths) const;
  // Whether a text names the file, which is gone once the program has ended.
  bool is_in(std::string_view text) const;
  // A text that names the file, by the name that the user knows.
  std::string shown(std::string text) const;

 private:
  explicit StandardInput(TemporaryDirectory folder) : folder_(std::move(folder)) {}
  std::string path() const;
  TemporaryDirectory folder_;
};

}  // namespace lockstep::cli
