// SPDX-License-Identifier: Apache-2.0
// `version` says what this build is. A part that is missing is named with its reason, as scripts choose
// formats by it and users ask why a command is off.
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/exporter/exporter.h"
#include "cli/kit/console.h"
#include "exporters/exporter.h"
#include "format/file_layout.h"
#include "readers/reader.h"
#include "report/page.h"

namespace lockstep::cli {
namespace {

constexpr Option kVersionOptions[] = {{0, "json", "", "print one JSON object"}};

constexpr std::string_view kCommit = LOCKSTEP_COMMIT;

int run_version(const Arguments& arguments) {
  if (!arguments.has("json"))
    return print("lockstep " LOCKSTEP_VERSION + (kCommit.empty() ? "" : " (" + std::string(kCommit) + ")") +
                 "\n");
  nlohmann::ordered_json document;
  document["schema"] = "lockstep.version.v1";
  document["version"] = LOCKSTEP_VERSION;
  document["commit"] = kCommit.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(kCommit);
  document["file_format"] = {{"major", format::kMajor}, {"minor", format::kMinor}};
  document["readers"] = nlohmann::ordered_json::array();
  for (const readers::Format* reader : readers::all()) document["readers"].push_back(reader->name);
  document["exporters"] = nlohmann::ordered_json::array();
  const auto part = [&](std::string_view name, std::string_view absent_because) {
    document["parts"][name] = {{"present", absent_because.empty()}};
    if (!absent_because.empty()) document["parts"][name]["because"] = absent_because;
  };
  for (const exporters::Exporter* exporter : exporters::all()) {
    if (exporter->off.empty())
      document["exporters"].push_back(exporter->name);
    else
      part(exporter->name, exporter->off);
  }
  part("report page", report::page_absent_because());
  part("exporter", exporter::missing().value_or(""));
  return print(document.dump(2) + "\n");
}

}  // namespace

const Command version_command = {
    .name = "version",
    .summary = "print the version",
    .description =
        "Prints the version of the program and the commit it was built from, with a + if files had changed; "
        "with --json also the file format it writes, the formats it reads and exports, and why a part is "
        "missing from this build.",
    .operands = {},
    .options = kVersionOptions,
    .run = run_version,
};

}  // namespace lockstep::cli
