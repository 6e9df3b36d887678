// SPDX-License-Identifier: Apache-2.0
// Releases before 2.1 leave the number out; where there is no tensor it runs into the operation:
// "CollectiveFingerPrint(SequenceNumber=4OpType=BARRIER)".
#include "readers/nccl_log/fingerprints.h"

#include <algorithm>
#include <string>

#include "readers/nccl_log/pattern.h"

namespace lockstep::readers::nccl_log {
namespace {

struct Fingerprint {
  int32_t rank = -1;
  std::string_view words;
};

// Of the first "Rank 3 is running collective: CollectiveFingerPrint(words".
bool first_fingerprint(std::string_view text, Fingerprint& print) {
  static const Pattern kPattern("Rank {int} is running collective: CollectiveFingerPrint({rest}");
  constexpr size_t kDigitsMost = 9;
  Captures captures;
  const size_t words = text.find(" is running collective:");
  const size_t at = text.substr(0, words).rfind("Rank ");
  if (words == std::string_view::npos || at == std::string_view::npos) return false;
  if (!kPattern.match(text.substr(at), captures)) return false;
  print.rank = captures[0].size() > kDigitsMost ? -1 : static_cast<int32_t>(to_int(captures[0]));
  print.words = captures[1].substr(0, captures[1].find(", but Rank "));
  return true;
}
bool second_fingerprint(std::string_view text, Fingerprint& print) {
  return first_fingerprint(text.substr(std::min(text.find("but Rank "), text.size())), print);
}

int64_t number_in(std::string_view words) {
  static const Pattern kNumber("SequenceNumber={int}");
  // So many fit into 64 bits.
  constexpr size_t kDigitsMost = 18;
  Captures captures;
  const size_t at = std::min(words.find("SequenceNumber="), words.size());
  if (!kNumber.match(words.substr(at), captures) || captures[0].size() > kDigitsMost) return -1;
  return to_int(captures[0]);
}

std::string operation_in(std::string_view words) {
  constexpr std::string_view kName = "OpType=";
  constexpr size_t kNameMost = 128;
  const size_t at = words.find(kName);
  if (at == std::string_view::npos) return {};
  words.remove_prefix(at + kName.size());
  return printable(words.substr(0, std::min(words.find_first_of(",) "), kNameMost)));
}

}  // namespace

bool begins_mismatch(std::string_view text) {
  return text.find("Detected mismatch between collectives on ranks") != std::string_view::npos;
}

bool is_half_mismatch(std::string_view text) {
  Fingerprint other;
  const bool is_whole = second_fingerprint(text, other) && !operation_in(other.words).empty();
  return begins_mismatch(text) && !is_whole;
}

bool read_mismatch(std::string_view text, TorchLine& line) {
  Fingerprint own, other;
  if (!begins_mismatch(text) || !first_fingerprint(text, own)) return false;
  line.op = operation_in(own.words);
  if (line.op.empty()) return false;
  line.remark = TorchRemark::kMismatch;
  // Both are ranks of the group, which the words do not name.
  line.group_rank = own.rank;
  if (line.rank < 0) line.rank = own.rank;
  line.seq = number_in(own.words);
  // The first rank's operation is worth telling alone.
  if (!second_fingerprint(text, other)) return true;
  line.other_rank = other.rank;
  line.other_seq = number_in(other.words);
  line.text = operation_in(other.words);
  return true;
}

}  // namespace lockstep::readers::nccl_log
