// SPDX-License-Identifier: Apache-2.0
// The live view as lines of text: a header, a table of the ranks that fit, and one line for those that are
// folded. The same lines go to the terminal and to `--once`.
#pragma once
#include <string>
#include <vector>

#include "base/text/json_text.h"
#include "live/rank_rows.h"

namespace lockstep::cli::top {

enum class SortKey { kRank, kLateness, kBandwidth, kOps, kInFlight, kDropped };

struct ViewOptions {
  SortKey sort = SortKey::kRank;
  bool reverse = false;
  bool fold = true;         // ranks that are good or ended, where all do not fit
  size_t first = 0;         // row to begin with
  size_t rows = SIZE_MAX;   // lines that the table may take, without its heading, below a verdict of one line
  size_t width = SIZE_MAX;  // columns
  bool cut = true;          // sentences, at the width: a screen has so many lines; else they are wrapped
};

enum class Mood { kPlain, kHeading, kBad, kWarning, kGood, kFaint };
struct Line {
  std::string text;
  Mood mood = Mood::kPlain;
};
inline constexpr size_t kVerdictLines = 3;  // at most
struct View {
  std::vector<Line> verdict;
  Line sums;    // how many ranks in which health, and what they do together
  Line hidden;  // which columns the width has no room for; empty: it has for all
  Line heading;
  std::vector<Line> table;
  size_t more = 0;  // rows behind the last line
};
// Needs no terminal. `seen` in the order of ranks, as RankWatch gives it.
View make_view(const live::RankRows& seen, const ViewOptions& options);

// All rows, unfolded.
Json view_json(const live::RankRows& seen);

}  // namespace lockstep::cli::top
