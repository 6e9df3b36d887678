// SPDX-License-Identifier: Apache-2.0
// RUN/manifest.json: what a run directory holds and what was asked for. Written whole, also when its state
// changes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/process_info.h"

namespace lockstep::run {

// What a run was started with. Read from a file it is untrusted: fields of another type count as absent.
struct Manifest {
  std::string version;            // of lockstep
  std::vector<std::string> argv;  // the traced command
  ProcessIdentity launcher;       // that made the directory
  int64_t started_ns = 0;         // Unix time
  std::string mode, retention;
  std::string output;         // where the merge goes; empty: nowhere
  std::string launchers_key;  // see JobPlace; empty: one launcher only
  int64_t launchers = 1;
  std::string state = "running";  // running, complete
};

std::string manifest_path(const std::string& run);
std::string to_json(const Manifest& manifest);
// Nothing if there is none, or it is not one of ours.
std::optional<Manifest> read_manifest(const std::string& run);

// An identity as part of a document: host, boot_id, pid_namespace, pid, start_ticks.
std::string to_json(const ProcessIdentity& process, const std::string& state);
struct Registration {
  ProcessIdentity process;
  std::string state;  // running, left
};
std::optional<Registration> read_registration(const std::string& path);

}  // namespace lockstep::run
