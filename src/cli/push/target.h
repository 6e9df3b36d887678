// SPDX-License-Identifier: Apache-2.0
// The store that `push` sends to and `fleet` asks, as a user names it.
#pragma once
#include "base/result.h"
#include "cli/command.h"
#include "store/fleet.h"

namespace lockstep::cli::push {

inline constexpr const char* kTargetHelp =
    "the store: http[s]://[USER@]HOST[:PORT][/DATABASE]; the database is `fleet` if none is named";

constexpr Option patience_option(const char* usually) {
  return {0, "patience", "TIME", "keep trying this long while the store does not answer, such as 10m",
          usually};
}

// Of the option that names the URL, --patience and LOCKSTEP_PUSH_KEY. The URL is not looked at.
Result<store::FleetTarget> target_of(const Arguments& arguments, const std::string& option);

}  // namespace lockstep::cli::push
