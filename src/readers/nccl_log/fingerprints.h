// SPDX-License-Identifier: Apache-2.0
// What two ranks call, as PyTorch compares it under TORCH_DISTRIBUTED_DEBUG=DETAIL:
// "Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(...),
// but Rank 0 is running collective: CollectiveFingerPrint(...)". Any bytes; no state.
#pragma once
#include <string_view>

#include "readers/nccl_log/log_model.h"

namespace lockstep::readers::nccl_log {

// Whether these words stand in it.
bool begins_mismatch(std::string_view text);
// Begun, and broken off before the second rank's operation.
bool is_half_mismatch(std::string_view text);
// Fills a kMismatch; false: the first rank's operation is not there.
bool read_mismatch(std::string_view text, TorchLine& line);

}  // namespace lockstep::readers::nccl_log
