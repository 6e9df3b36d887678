// SPDX-License-Identifier: Apache-2.0
// A profiler that is on by turns leaves several files a rank, each of a window of the job. Ranks compare in
// one window: which.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "readers/kineto/recording.h"

namespace lockstep::readers::kineto {

// A file of one rank and one window. `heading` is all that choosing needs, so no file is read whole for it.
struct TraceFile {
  std::string path;
  Heading heading;
};
// Its loss, and the reason as a user reads it.
struct UnusedFile {
  std::string path;
  std::string_view kind, why;  // static
};
struct ChosenFiles {
  std::vector<TraceFile> used;  // by rank; of each rank one, and all of unknown rank
  std::vector<UnusedFile> unused;
};

// Of each rank its file of the newest window that most ranks have, else the one nearest to it. Files are of
// one window that begin closer together, by the hosts' clocks, than those of any rank. Files without events
// are used only where there are no others.
ChosenFiles choose_window(std::vector<TraceFile> files);

}  // namespace lockstep::readers::kineto
