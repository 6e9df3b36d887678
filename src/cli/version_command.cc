// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "exporters/exporter.h"
#include "format/file_layout.h"
#include "readers/reader.h"

namespace lockstep::cli {
namespace {

constexpr Option kOptions[] = {{0, "json", "", "print one JSON object"}};

int run(const Arguments& arguments) {
  if (!arguments.has("json")) return print("lockstep " LOCKSTEP_VERSION "\n");
  nlohmann::ordered_json document;
  document["version"] = LOCKSTEP_VERSION;
  document["file_format"] = {{"major", format::kMajor}, {"minor", format::kMinor}};
  document["readers"] = nlohmann::ordered_json::array();
  for (const readers::Format* reader : readers::all()) document["readers"].push_back(reader->name);
  document["exporters"] = nlohmann::ordered_json::array();
  nlohmann::ordered_json off = nlohmann::ordered_json::object();
  for (const exporters::Exporter* exporter : exporters::all()) {
    if (exporter->off.empty())
      document["exporters"].push_back(exporter->name);
    else
      off[exporter->name] = exporter->off;
  }
  document["exporters_off"] = off;
  return print(document.dump(2) + "\n");
}

}  // namespace

const Command version_command = {
    .name = "version",
    .summary = "print the version",
    .description =
        "Prints the version of the program; with --json also the file format it writes and the formats it "
        "reads and exports, and why a format is off in this build.",
    .operands = {},
    .options = kOptions,
    .run = run,
};

}  // namespace lockstep::cli
