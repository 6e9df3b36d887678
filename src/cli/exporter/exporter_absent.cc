// SPDX-License-Identifier: Apache-2.0
#include "cli/exporter/exporter.h"
#include "cli/kit/console.h"

namespace lockstep::cli::exporter {

std::optional<std::string> missing() {
  return "built without prometheus-cpp (Debian: prometheus-cpp-dev); build Lockstep again with it";
}

int run(const Settings&) { return fail("exporter is off: " + *missing()); }

}  // namespace lockstep::cli::exporter
