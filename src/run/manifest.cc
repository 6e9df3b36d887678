// SPDX-License-Identifier: Apache-2.0
// The manifest lies in a folder that others may write to. A field of a wrong type counts as absent rather
// than as an error: an unreadable manifest must not keep anybody from reading the run.
#include "run/manifest.h"

#include <nlohmann/json.hpp>

#include "run/json_fields.h"
#include "run/small_file.h"

namespace lockstep::run {
namespace {

constexpr const char* kFormat = "lockstep-run";

nlohmann::ordered_json identity_fields(const ProcessIdentity& process) {
  return {{"host", process.host},
          {"boot_id", process.boot_id},
          {"pid_namespace", process.pid_namespace},
          {"pid", process.pid},
          {"start_ticks", process.start_ticks}};
}

ProcessIdentity read_identity(const nlohmann::json& document) {
  return ProcessIdentity{text_field(document, "host"), text_field(document, "boot_id"),
                         static_cast<uint64_t>(number_field(document, "pid_namespace", 0)),
                         number_field(document, "pid", 0),
                         static_cast<uint64_t>(number_field(document, "start_ticks", 0))};
}

}  // namespace

std::string manifest_path(const std::string& run) { return run + "/manifest.json"; }

std::string to_json(const Manifest& manifest) {
  nlohmann::ordered_json document = {{"format", kFormat},
                                     {"format_version", 1},
                                     {"version", manifest.version},
                                     {"state", manifest.state},
                                     {"argv", manifest.argv},
                                     {"launcher", identity_fields(manifest.launcher)},
                                     {"started_ns", manifest.started_ns},
                                     {"mode", manifest.mode},
                                     {"retention", manifest.retention},
                                     {"output", manifest.output},
                                     {"launchers_key", manifest.launchers_key},
                                     {"launchers", manifest.launchers}};
  return to_text(document);
}

std::optional<Manifest> read_manifest(const std::string& run) {
  auto document = read_document(manifest_path(run));
  if (!document || text_field(*document, "format") != kFormat) return std::nullopt;
  Manifest manifest;
  manifest.version = text_field(*document, "version");
  manifest.state = text_field(*document, "state");
  manifest.argv = words_field(*document, "argv");
  if (auto launcher = document->find("launcher"); launcher != document->end() && launcher->is_object()) {
    manifest.launcher = read_identity(*launcher);
  }
  manifest.started_ns = number_field(*document, "started_ns", 0);
  manifest.mode = text_field(*document, "mode");
  manifest.retention = text_field(*document, "retention");
  manifest.output = text_field(*document, "output");
  manifest.launchers_key = text_field(*document, "launchers_key");
  manifest.launchers = number_field(*document, "launchers", 1);
  return manifest;
}

std::string to_json(const ProcessIdentity& process, const std::string& state) {
  nlohmann::ordered_json document = identity_fields(process);
  document["state"] = state;
  return to_text(document);
}

std::optional<Registration> read_registration(const std::string& path) {
  auto document = read_document(path);
  if (!document) return std::nullopt;
  return Registration{read_identity(*document), text_field(*document, "state")};
}

}  // namespace lockstep::run
