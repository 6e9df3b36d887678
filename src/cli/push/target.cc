// SPDX-License-Identifier: Apache-2.0
// One reading of the store's URL, key and patience for `push` and `fleet`. The key comes from the
// environment, as command lines can be read by every user of the machine.
#include "cli/push/target.h"

#include "base/text/units.h"

namespace lockstep::cli::push {

Result<store::FleetTarget> target_of(const Arguments& arguments, const std::string& option) {
  const auto patience = parse_duration(arguments.value("patience"));
  if (!patience)
    return usage_error("--patience takes a time, such as 10m, not '" + arguments.value("patience") + "'");
  return store::FleetTarget{.url = arguments.value(option),
                            .key = store::key_of_environment(),
                            // parse_duration() gives ns.
                            .patience = std::chrono::milliseconds(*patience / 1'000'000)};
}

}  // namespace lockstep::cli::push
