// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/exporter/exporter.h"
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
  for (const exporters::Exporter* exporter : exporters::all())
    document["exporters"].push_back(exporter->name);
  document["off"] = nlohmann::ordered_json::object();
  if (auto why = exporter::missing()) document["off"]["exporter"] = *why;
  return print(document.dump(2) + "\n");
}

}  // namespace

const Command version_command = {
    .name = "version",
    .summary = "print the version",
    .description =
        "Prints the version of the program; with --json also the file format it writes, the formats it "
        "reads and exports, and what is off in this build and why.",
    .operands = {},
    .options = kOptions,
    .run = run,
};

}  // namespace lockstep::cli
