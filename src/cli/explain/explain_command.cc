// SPDX-License-Identifier: Apache-2.0
// `explain` prints what a finding means, from the same page that docs/findings.md is. An id that nobody knows
// is an error with ids that are alike, so that a slip in a script shows.
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/text/style.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "verdict/findings_page.h"

namespace lockstep::cli {
namespace {

int run_explain(const Arguments& arguments) {
  if (arguments.operands().empty()) {
    const Style style = Style::of_stdout();
    // One a line for `grep`.
    const size_t width = isatty(STDOUT_FILENO) == 1 ? style.columns() : std::numeric_limits<size_t>::max();
    return print(verdict::list(style, width));
  }
  std::string id = arguments.operands()[0];
  // By hand for ASCII: the locale must not change what an id is.
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  const auto& all = verdict::entries();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const verdict::Entry& entry) { return entry.id == id; });
  if (found != all.end()) return print(verdict::text(*found, Style::of_stdout()));
  const std::string others = verdict::alike(id);
  return fail("no finding is called '" + id + "'; " +
              (others.empty() ? "`lockstep explain` alone lists all" : "there are:" + others));
}

}  // namespace

const Command explain_command = {
    .name = "explain",
    .summary = "explain what a finding means, and what to do about it",
    .description =
        "Prints what a finding means, when it is reported, and what to do. The id is what `lockstep "
        "diagnose` prints in brackets under a finding, and `id` in its JSON. Without an id it lists all with "
        "their meanings.",
    .operands = {.name = "FINDING-ID",
                 .help = "such as never-joined or fallback.net-socket",
                 .least = 0,
                 .most = 1},
    .options = {},
    .run = run_explain,
};

}  // namespace lockstep::cli
