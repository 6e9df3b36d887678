// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text/style.h"
#include "cli/command.h"
#include "cli/kit/console.h"
#include "verdict/findings_page.h"

namespace lockstep::cli {
namespace {

// Entries whose class the word is a part of; of an empty one, all.
std::string list_of(std::string_view id, bool& any) {
  const std::string_view word = id.substr(0, id.find('.'));
  std::string text;
  for (const verdict::Entry& entry : verdict::entries()) {
    if (entry.id.substr(0, entry.id.find('.')).find(word) == std::string_view::npos) continue;
    text += (text.empty() ? "" : "\n") + std::string(entry.id);
  }
  any = !text.empty();
  return text;
}

int run(const Arguments& arguments) {
  bool any = false;
  if (arguments.operands().empty()) return print(list_of("", any) + "\n");
  std::string id = arguments.operands()[0];
  std::transform(id.begin(), id.end(), id.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  const auto& all = verdict::entries();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const verdict::Entry& entry) { return entry.id == id; });
  if (found != all.end()) return print(verdict::text(*found, Style::of_stdout()));
  std::string like = list_of(id, any);
  if (!any) return fail("no finding is called '" + id + "'; `lockstep explain` alone lists all");
  std::replace(like.begin(), like.end(), '\n', ' ');
  return fail("no finding is called '" + id + "'; there are: " + like);
}

}  // namespace

const Command explain_command = {
    .name = "explain",
    .summary = "explain what a finding means, and what to do about it",
    .description =
        "Prints what a finding means, when it is reported, and what to do. The id is what `lockstep "
        "diagnose` prints in brackets under a finding, and `id` in its JSON. Without an id it lists all.",
    .operands = {.name = "FINDING-ID",
                 .help = "such as never-joined or fallback.net-socket",
                 .least = 0,
                 .most = 1},
    .options = {},
    .run = run,
};

}  // namespace lockstep::cli
