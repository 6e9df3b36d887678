// SPDX-License-Identifier: Apache-2.0
// The part of TorchParser that is not of its watchdog: what ranks announce before each call in a job with
// TORCH_DISTRIBUTED_DEBUG=DETAIL, a line for each, of which a rank's last is enough; and what a program
// raised.
#include <algorithm>
#include <utility>

#include "readers/nccl_log/torch_lines.h"

namespace lockstep::readers::nccl_log {
namespace {

constexpr size_t kAnnouncersMost = 1 << 16, kOpMost = 64;

int64_t number(std::string_view digits, size_t most) { return digits.size() > most ? -1 : to_int(digits); }

}  // namespace

// "[Rank 3] Running collective: CollectiveFingerPrint(SequenceNumber=12, OpType=ALLREDUCE, ...": the number
// is of a group, which is not named.
bool TorchParser::announcement(std::string_view text, const Here& here) {
  static const Pattern kCall(
      "[Rank {int}] Running collective: CollectiveFingerPrint(SequenceNumber={int}, OpType={text},");
  const size_t at = text.find("] Running collective: ");
  Captures captures;
  if (at == std::string_view::npos ||
      !kCall.match(text.substr(std::min(text.rfind("[Rank ", at), at)), captures))
    return false;
  const auto rank = static_cast<int32_t>(number(captures[0], 9));
  const int64_t seq = number(captures[1], 18);
  const auto known = announced_.find(rank);
  const bool is_new = known == announced_.end();
  // An older announcement of a rank says nothing new. Beyond the bound no rank is added.
  if (rank < 0 || seq < 0 || (is_new ? announced_.size() >= kAnnouncersMost : known->second.seq >= seq))
    return true;
  TorchLine line;
  line.remark = TorchRemark::kAnnounced;
  line.rank = rank;
  line.seq = seq;
  line.op = printable(captures[2].substr(0, kOpMost));
  line.first = here();
  announced_[rank] = std::move(line);
  return true;
}

void TorchParser::end_announcements() {
  for (const auto& [rank, line] : announced_) keep(line, [&last = line] { return last.first; });
  announced_.clear();
}

bool TorchParser::raised(int32_t rank, std::string_view text, const Here& here) {
  if (rank < 0) return false;
  TorchLine line;
  line.remark = TorchRemark::kRaised;
  line.rank = rank;
  line.text = printable(text.substr(0, LogModel::kValueMost));
  keep(std::move(line), here);
  return true;
}

}  // namespace lockstep::readers::nccl_log
