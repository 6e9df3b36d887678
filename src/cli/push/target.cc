// SPDX-License-Identifier: Apache-2.0
#include "cli/push/target.h"

#include "base/text/units.h"

namespace lockstep::cli::push {

Result<store::FleetTarget> target_of(const Arguments& arguments, const std::string& option) {
  const auto patience = parse_duration(arguments.value("patience"));
  if (!patience)
    return usage_error("--patience takes a time, such as 10m, not '" + arguments.value("patience") + "'");
  return store::FleetTarget{.url = arguments.value(option),
                            .key = store::key_of_environment(),
                            .patience = std::chrono::milliseconds(*patience / 1'000'000)};
}

}  // namespace lockstep::cli::push
