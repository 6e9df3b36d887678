// SPDX-License-Identifier: Apache-2.0
// Who ought to be in a run and is not: processes that took part in the job by their environment or by the
// libraries they had mapped but left no file, and ranks that nobody saw.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "run/census.h"
#include "run/process_files.h"

namespace lockstep::run {

struct RunLoss {
  std::string kind;  // never_loaded, file_gone, missing_rank, census_cut, hsa_never_called
  uint64_t count = 0;
  std::string detail;  // who, and what to do
};

// A process is not missed when one of its rank, of its ancestors or of its descendants has a file: helpers
// such as data loaders inherit rank and libraries, and starters such as torchrun map libraries that only
// their workers use. Neither is a starter without a rank above processes with one. Ranks that were seen
// without a file share one line.
std::vector<RunLoss> missing_processes(const std::vector<ProcessFile>& files,
                                       const std::vector<CensusReport>& censuses);
// The same for a run directory.
std::vector<RunLoss> missing_processes(const std::string& run);

// A process that has a file has captured, also one that was gone before it was seen to, or at all.
void note_captured(CensusReport& census, const std::vector<ProcessFile>& files);

}  // namespace lockstep::run
