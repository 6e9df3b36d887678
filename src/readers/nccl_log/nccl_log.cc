// SPDX-License-Identifier: Apache-2.0
#include "readers/nccl_log/nccl_log.h"

#include <algorithm>
#include <string_view>

namespace lockstep::readers::nccl_log {
namespace {

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  constexpr std::string_view kMarks[] = {" NCCL INFO ",
                                         " NCCL WARN ",
                                         "NCCL version ",
                                         "ProcessGroupNCCL.cpp",
                                         "Watchdog caught collective operation",
                                         "exitcode  : ",
                                         "srun: error: "};
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

}  // namespace

const Format kFormat{.name = "nccl_log",
                     .summary = "logs",
                     .sniff = sniff,
                     .open = nullptr,
                     .sniff_deep = true,
                     .setting = "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/shared/job/nccl.%h.%p.log",
                     .tells_of_hangs = true};

}  // namespace lockstep::readers::nccl_log
