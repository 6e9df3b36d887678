// SPDX-License-Identifier: Apache-2.0
#include "verdict/log_input.h"

#include "readers/nccl_log/read_logs.h"

namespace lockstep::verdict {

Result<readers::nccl_log::LogModel> read_logs(const readers::Inputs& inputs,
                                              const readers::FormatFiles& files) {
  LOCKSTEP_ASSIGN(auto model, readers::nccl_log::read_logs(files.files));
  // Files out of an archive lie in a temporary folder, whose name says nothing to the user.
  for (std::string& file : model.files) file = inputs.unpacker->shown(std::move(file));
  return model;
}

}  // namespace lockstep::verdict
