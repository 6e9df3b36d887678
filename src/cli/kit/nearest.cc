// SPDX-License-Identifier: Apache-2.0
// Guesses what a mistyped command or option was meant for: the least distance by letters added, left out,
// changed or swapped with a neighbour (optimal string alignment). A guess is given only if it is unique and
// at most a third of the letters differ. A wrong guess would mislead more than none.
#include "cli/kit/nearest.h"

#include <algorithm>

namespace lockstep::cli {
namespace {

constexpr size_t kLongest = 64;  // a word that is longer is no slip

size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      // A swap counts once and not as two changes, as it is the commonest slip.
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  // The table grows with the word's length, which the caller does not bound.
  if (word.size() > kLongest) return {};
  std::string_view best;
  size_t least = word.size() / 3, as_near = 0;
  for (const std::string_view candidate : known) {
    const size_t far = distance(word, candidate);
    if (far > least) continue;
    // Several that are equally near are no guess.
    as_near = far < least ? 1 : as_near + 1;
    least = far;
    best = candidate;
  }
  return as_near == 1 ? best : std::string_view();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string_view meant = nearest(word, known);
  return meant.empty() ? std::string() : "; did you mean " + std::string(meant) + "?";
}

}  // namespace lockstep::cli
