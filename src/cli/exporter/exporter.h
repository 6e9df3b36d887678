// SPDX-License-Identifier: Apache-2.0
// `lockstep exporter`: looks at a run again and again and serves what it has seen as metrics, over HTTP or in
// a file.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep::cli::exporter {

struct Settings {
  std::vector<std::string> paths;        // a run directory, which may not be there yet, or process files
  std::string listen;                    // "ADDRESS:PORT"
  std::string textfile;                  // instead of listening; empty: none
  std::chrono::milliseconds interval{};  // of the text file
  bool once = false;                     // one text, to the file or to stdout
  std::chrono::milliseconds diagnose{};  // pause between diagnoses; 0 none
  size_t ranks = 0, comms = 0;           // labels of their own
};

// Why there are no metrics in this build; nothing if there are.
std::optional<std::string> missing();
// Until it is interrupted, or once; the exit code.
int run(const Settings& settings);

}  // namespace lockstep::cli::exporter
