// SPDX-License-Identifier: Apache-2.0
// What counts as a log. In a directory, marks of NCCL, PyTorch, launchers and the kernel decide. A file that
// somebody names may be any printed text: what it says is known when it is read.
#include "readers/nccl_log/nccl_log.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/lines/utf16.h"

namespace lockstep::readers::nccl_log {
namespace {

// Of text that may be in UTF-16.
std::string text_of(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Utf16::is(text) ? std::string(Utf16().utf8(text)) : std::string(text);
}

bool sniff(std::span<const std::byte> first_bytes) {
  const std::string text = text_of(first_bytes);
  constexpr std::string_view kMarks[] = {"NCCL INFO ",
                                         "NCCL WARN ",
                                         "NCCL ERROR ",
                                         "NCCL version ",
                                         "ProcessGroupNCCL.cpp",
                                         "Watchdog caught collective operation",
                                         "CollectiveFingerPrint(",
                                         "NCCL error in: ",
                                         "DistBackendError",
                                         "DistStoreError",
                                         "failed to pass monitoredBarrier",
                                         "Test NCCL failure",
                                         "NVRM: Xid",
                                         "oom_kill event",
                                         ") local_rank: ",
                                         "exitcode  : ",
                                         "srun: error: "};
  return std::any_of(std::begin(kMarks), std::end(kMarks),
                     [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

// Text that is no document of another kind: whoever names it means it as a log.
bool may_be_a_log(std::span<const std::byte> first_bytes) {
  const std::string text = text_of(first_bytes);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return false;
  // A document of JSON, and not what Python prints of a table: "{'loss': 2.5", on a page "{&#x27;loss".
  const size_t second = text.find_first_not_of(" \t\r\n", first + 1);
  if (text[first] == '{' && (second == std::string::npos || text[second] == '"' || text[second] == '}'))
    return false;
  // A JSON list of objects or texts. A log may begin with a bracket, too: "[rank0]", "[2031-03-03 ...".
  const bool is_list = text[first] == '[' && text.find_first_of("{\"\n", first + 1) == first + 1;
  const bool is_printed = std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && (byte < '\a' || byte > '\r') && byte != 0x1B) || byte == 0x7F;
  });
  return !is_list && is_printed && text.find('\n') != std::string::npos;
}

}  // namespace

const Format kFormat{.name = "nccl_log",
                     .summary = "logs",
                     .sniff = sniff,
                     .open = nullptr,
                     .sniff_deep = true,
                     .setting = "NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/shared/job/nccl.%h.%p.log",
                     .reports_hangs = true,
                     .may_be_meant = may_be_a_log};

}  // namespace lockstep::readers::nccl_log
