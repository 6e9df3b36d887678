// SPDX-License-Identifier: Apache-2.0
// Forms of one line put a blank where lines ended. A line begins where words stand that lines begin with and
// sentences do not hold. Each blank is compared with these, so the cost grows with the text and not with its
// square.
#include "readers/nccl_log/paste.h"

#include <algorithm>
#include <iterator>

#include "base/ascii.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kNo = std::string_view::npos;
constexpr size_t kMarkMost = 96;  // of launchers and loggers before a line's own words

// Words with which programs, launchers and NCCL begin a line, and which no sentence holds.
constexpr std::string_view kBegins[] = {"Traceback (most recent call last):",
                                        "File \"",
                                        "frame #",
                                        "[E ProcessGroup",
                                        "[W ProcessGroup",
                                        "[I ProcessGroup",
                                        "[rank",
                                        "[default",
                                        "RuntimeError: ",
                                        "torch.distributed.Dist",
                                        "torch.distributed.elastic.",
                                        "ncclUnhandledCudaError: ",
                                        "ncclSystemError: ",
                                        "ncclInternalError: ",
                                        "ncclInvalidUsage: ",
                                        "ncclInvalidArgument: ",
                                        "ncclRemoteError: ",
                                        "Last error:",
                                        "Exception raised from ",
                                        "terminate called ",
                                        "what(): ",
                                        "INTERNAL: ",
                                        "srun: error: ",
                                        "slurmstepd: error: ",
                                        "Root Cause (first observed failure)",
                                        "Other Failures:",
                                        "error_file: ",
                                        "traceback : ",
                                        "exitcode ",
                                        "rank : ",
                                        "host : ",
                                        "time : ",
                                        "(raylet) ",
                                        "Test NCCL failure",
                                        ".. ",
                                        "# Out of bounds values",
                                        "WARNING: ",
                                        "ERROR: "};

size_t digits(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end - at;
}

// "host:123:456 [0] " of NCCL.
bool is_head(std::string_view text) {
  const size_t end = text.substr(0, kMarkMost).find(' ');
  if (end == kNo || !text.substr(end).starts_with(" [")) return false;
  const std::string_view word = text.substr(0, end);
  const size_t tid = word.rfind(':'), pid = tid == kNo || tid == 0 ? kNo : word.rfind(':', tid - 1);
  return pid != kNo && pid > 0 && tid > pid + 1 && digits(word, pid + 1) == tid - pid - 1 && tid + 1 < end &&
         digits(word, tid + 1) == end - tid - 1;
}

// "2031-03-03 04:05", "2031/03/03", "[2031-03-03", "E0303 04:05:06": a logger's time.
bool is_time(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(1);
  const bool is_date =
      digits(text, 0) == 4 && text.size() > 7 && (text[4] == '-' || text[4] == '/') && text[7] == text[4];
  const bool is_glog = text.size() > 8 && std::string_view("IWEF").find(text.front()) != kNo &&
                       digits(text, 1) >= 3 && digits(text, 1) <= 4 && text[digits(text, 1) + 1] == ' ' &&
                       is_digit(text[digits(text, 1) + 2]);
  return is_date || is_glog;
}

// "(TrainWorker pid=77) " of Ray and vLLM.
bool is_worker(std::string_view text) {
  if (!text.starts_with('(')) return false;
  const std::string_view inside = text.substr(0, std::min(text.substr(0, kMarkMost).find(')'), text.size()));
  return inside.size() < kMarkMost && inside.find(" pid=") != kNo;
}

// `before`: what stands before the blank. An exception names the release after a comma, RCCL behind a head.
bool begins_line(std::string_view before, std::string_view text) {
  if (text.starts_with("NCCL version ") || text.starts_with("RCCL version "))
    return !before.ends_with(',') && !before.ends_with("INFO");
  return is_head(text) || is_time(text) || is_worker(text) ||
         std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view word) { return text.starts_with(word); });
}

// Nothing but a mark of a launcher or a time, whose line goes on.
bool is_mark(std::string_view text) {
  if (text.size() > kMarkMost) return false;
  return (is_time(text) && text.find_first_of("abcdefghijklmnopqrstuvwxyz") == kNo) ||
         ((text.front() == '(' || text.front() == '[') &&
          (text.ends_with(") ") || text.ends_with("] ") || text.ends_with(": ") || text.ends_with(":"))) ||
         trimmed(text) == "Last error:";
}

}  // namespace

size_t pasted_line(std::string_view text) {
  for (size_t at = text.find(' '); at != kNo; at = text.find(' ', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (!rest.empty() && rest.front() != ' ' && begins_line(text.substr(0, at), rest) &&
        !is_mark(text.substr(0, at + 1)))
      return at + 1;
  }
  return text.size();
}

bool is_paste(std::string_view text) {
  constexpr size_t kLinesMost = 3, kMore = 2;  // lines that end; those that do not
  size_t lines = 0, parts = 0;
  while (!text.empty() && parts < lines + kMore) {
    if (++lines > kLinesMost) return false;
    std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    for (; !line.empty() && parts < kLinesMost + kMore; ++parts) line.remove_prefix(pasted_line(line));
  }
  return parts >= lines + kMore &&
         static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + lines <= kLinesMost;
}

}  // namespace lockstep::readers::nccl_log
