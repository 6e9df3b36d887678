// SPDX-License-Identifier: Apache-2.0
// What to say of files that are not there, or say too little: in the words of whoever wrote them.
#pragma once
#include <cstddef>
#include <string>

#include "model/job.h"

namespace lockstep::analysis::hang {

struct FileWords {
  std::string named;        // who says how many ranks there are: "the launcher named 8 ranks"
  std::string look;         // where ranks without a file stand still: what to look at
  std::string have;         // how to come by the files of ranks
  std::string bring;        // the same, as what would decide it
  std::string overwritten;  // older operations are gone
  std::string keep_older;   // what keeps them
  std::string cut;          // the last operations are not there
  std::string keep_all;     // what has them
};
FileWords file_words(const model::Job& job, size_t ranks);

}  // namespace lockstep::analysis::hang
