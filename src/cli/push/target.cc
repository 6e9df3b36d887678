// SPDX-License-Identifier: Apache-2.0
#include "cli/push/target.h"

#include <cstdlib>

#include "base/text/units.h"

namespace lockstep::cli::push {

Result<store::FleetTarget> target_of(const Arguments& arguments, const std::string& option) {
  const auto patience = parse_duration(arguments.value("patience"));
  if (!patience)
    return Error{ErrorCode::kUsage,
                 "--patience takes a time, such as 10m, not '" + arguments.value("patience") + "'",
                 {}};
  store::FleetTarget target{.url = arguments.value(option),
                            .key = {},
                            .patience = std::chrono::milliseconds(*patience / 1'000'000)};
  if (const char* const key = std::getenv("LOCKSTEP_PUSH_KEY"); key != nullptr) target.key = key;
  return target;
}

}  // namespace lockstep::cli::push
