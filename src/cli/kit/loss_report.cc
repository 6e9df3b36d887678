// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/loss_report.h"

#include <vector>

#include "base/text/units.h"
#include "cli/kit/table.h"

namespace lockstep::cli {

std::string loss_report(const input::RunOverview& run) {
  const std::vector<input::FoldedLoss> losses = input::fold_losses(run);
  if (losses.empty()) return "Losses: none.\n";
  Table table({"count", "<stage", "<kind", "<where", "<meaning"});
  for (const input::FoldedLoss& loss : losses) {
    table.add({format_count(loss.count), loss.stage, loss.kind, input::loss_place(loss, run), loss.detail});
  }
  return "Losses\n" + table.text();
}

}  // namespace lockstep::cli
