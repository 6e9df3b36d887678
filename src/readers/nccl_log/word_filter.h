// SPDX-License-Identifier: Apache-2.0
// Whether a line without NCCL's head may be one that anybody here reads. Most lines of a job are not.
#pragma once
#include <string_view>

namespace lockstep::readers::nccl_log {

// Has to be true of every line that a reader knows, and may be true of any other. Any thread.
bool may_speak(std::string_view text);

}  // namespace lockstep::readers::nccl_log
