// SPDX-License-Identifier: Apache-2.0
// What keys do to the view, without a terminal, so that tests can press them. `first` may grow beyond the
// table; make_view() takes the last row instead, as only it knows how many there are.
#include "cli/top/controls.h"

#include <algorithm>

namespace lockstep::cli::top {
namespace {

struct SortChoice {
  char letter;
  SortKey key;
  std::string_view name;
};
constexpr SortChoice kSorts[] = {
    {'r', SortKey::kRank, "rank"},           {'l', SortKey::kLateness, "lateness"},
    {'b', SortKey::kBandwidth, "bandwidth"}, {'o', SortKey::kOps, "operations"},
    {'i', SortKey::kInFlight, "in flight"},  {'d', SortKey::kDropped, "dropped"},
};

constexpr std::string_view kHelp[] = {
    "r l b o i d   sort by rank, lateness, bandwidth, operations, time in flight,",
    "              dropped events; again: reverse",
    "f             fold healthy ranks if they do not all fit, or show every rank",
    "p, space      pause and resume",
    "arrows, page up and down, home, end: scroll",
    "q, Ctrl-C     quit",
    "",
    "behind   operations that others of a communicator have begun and this rank not",
    "late     how long ago, at least, another rank began what this rank has not",
    "beat     since the capture library's last sign of life, about one a second",
    "in flight: calls, operations, GPU and network work that began and has not",
    "         ended, as far as the mode records it",
    "state    late: others wait for it; waiting for rank N: N is late, stopped or",
    "         gone; stopped: by a signal or a debugger; gone: ended without closing",
    "         its file; silent: no sign of life, and the process is not visible from",
    "         here; ended: normally; replaced: gone or silent, and its rank has been",
    "         started again",
    "",
    "`lockstep diagnose` on the same run says why.",
};

}  // namespace

void Controls::sort_by(SortKey key) {
  // The key of the sort in force reverses it.
  options_.reverse = options_.sort == key && !options_.reverse;
  options_.sort = key;
  options_.first = 0;
}

std::string_view Controls::sort_name() const {
  for (const SortChoice& choice : kSorts) {
    if (choice.key == options_.sort) return choice.name;
  }
  return {};
}

bool Controls::press(int key, size_t page) {
  if (key == 'q') return false;
  if (help_) {  // any key closes it
    help_ = false;
    return true;
  }
  for (const SortChoice& choice : kSorts) {
    if (key == choice.letter) sort_by(choice.key);
  }
  size_t& first = options_.first;
  page = std::max<size_t>(page, 1);
  switch (key) {
    case 'f':
      options_.fold = !options_.fold;
      first = 0;
      break;
    case 'p':
    case ' ':
      paused_ = !paused_;
      break;
    case '?':
    case 'h':
      help_ = true;
      break;
    case kKeyUp:
      first -= std::min<size_t>(first, 1);
      break;
    case kKeyDown:
      ++first;
      break;
    case kKeyPageUp:
      first -= std::min(first, page);
      break;
    case kKeyPageDown:
      first += page;
      break;
    case kKeyHome:
      first = 0;
      break;
    case kKeyEnd:
      // Beyond any table, with room for further steps down without overflow.
      first = SIZE_MAX / 2;
      break;
    default:
      break;
  }
  return true;
}

std::span<const std::string_view> help_lines() { return kHelp; }

}  // namespace lockstep::cli::top
