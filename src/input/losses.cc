// SPDX-License-Identifier: Apache-2.0
// Equal losses of many processes become one line with a count. A job of a thousand ranks would print a
// thousand equal lines before its first finding otherwise.
#include "input/losses.h"

#include <algorithm>
#include <map>

#include "base/exit_codes.h"
#include "base/text/units.h"
#include "model/names/who.h"

namespace lockstep::input {

std::string loss_place(const FoldedLoss& loss, const RunOverview& run) {
  if (loss.processes.empty()) return "run";
  if (loss.processes.size() > 1) return plural(loss.processes.size(), "process");
  const ProcessOverview& process = run.processes[static_cast<size_t>(*loss.processes.begin())];
  return model::Who{.rank = process.rank, .device = process.host_device, .pid = process.pid}.label();
}

std::vector<FoldedLoss> fold_losses(const RunOverview& run) {
  std::map<std::tuple<std::string, std::string, std::string>, FoldedLoss> by_key;
  for (const LossLine& loss : run.losses) {
    FoldedLoss& folded = by_key[{loss.stage, loss.kind, loss.detail}];
    folded.stage = loss.stage;
    folded.kind = loss.kind;
    folded.detail = loss.detail;
    folded.count += loss.count;
    if (loss.process >= 0) folded.processes.insert(loss.process);
  }
  std::vector<FoldedLoss> losses;
  for (auto& [key, folded] : by_key) losses.push_back(std::move(folded));
  std::stable_sort(losses.begin(), losses.end(), [](const FoldedLoss& a, const FoldedLoss& b) {
    // What concerns the whole run is about missing files and processes: it goes before any number of events.
    return std::pair(a.processes.empty(), a.count) > std::pair(b.processes.empty(), b.count);
  });
  return losses;
}

std::string loss_words(const FoldedLoss& loss) {
  if (loss.detail.starts_with("of ")) return format_count(loss.count) + ' ' + loss.detail;
  const std::string count = loss.count > 1 ? format_count(loss.count) + " x " : "";
  // The detail is a sentence for people; the kind is a word for programs.
  return count + (loss.detail.empty() ? loss.kind : loss.detail);
}

std::vector<std::string> loss_sentences(const RunOverview& run) {
  std::vector<std::string> lines;
  for (const FoldedLoss& loss : fold_losses(run)) {
    lines.push_back("lost: " + loss_words(loss) +
                    (loss.processes.empty() ? "" : " [" + loss_place(loss, run) + "]"));
  }
  return lines;
}

int exit_of_losses(const RunOverview& run) {
  // Only what is missing as a whole counts. Other losses are shown, and what was made can still be used.
  const bool whole = std::none_of(run.losses.begin(), run.losses.end(), [](const LossLine& loss) {
    return loss.kind == "unreadable_file" || loss.kind == "unreadable_process";
  });
  return whole ? kExitOk : kExitCannotTell;
}

}  // namespace lockstep::input
