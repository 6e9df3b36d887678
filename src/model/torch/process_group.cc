// SPDX-License-Identifier: Apache-2.0
// Dumps and profiler traces name one group in different words, and both have to become one communicator of
// the model. So the name is put together from PyTorch's number and description, and the id is a hash of that
// and the members, which all ranks' files have alike. Without members there is no id, as groups of other
// ranks bear the same number and description.
#include "model/torch/process_group.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "base/ascii.h"
#include "model/limits.h"

namespace lockstep::model {
namespace {

constexpr int64_t kMostOperations = int64_t{1} << 26;

}  // namespace

std::string process_group_name(std::string_view name, std::string_view description) {
  if (name == "0" && (description.empty() || description == "default_pg")) return "default_pg";
  if (description.empty() || description == "undefined") return "group " + std::string(name);
  return std::string(description) + " (group " + std::string(name) + ")";
}

ProcessGroup process_group_of(std::string_view comm_name) {
  constexpr std::string_view kGroup = "group ", kBehind = " (group ";
  if (comm_name == "default_pg") return {"0", "default_pg"};
  if (comm_name.starts_with(kGroup)) return {comm_name.substr(kGroup.size()), {}};
  const size_t at = comm_name.rfind(kBehind);
  if (at == std::string_view::npos || !comm_name.ends_with(")")) return {};
  const size_t begin = at + kBehind.size();
  return {comm_name.substr(begin, comm_name.size() - 1 - begin), comm_name.substr(0, at)};
}

std::vector<int32_t> parse_ranks(std::string_view text) {
  std::vector<int32_t> ranks;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end && ranks.size() < size_t{kMostRanks}; ++at) {
    if (!is_digit(*at)) continue;
    int32_t rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error == std::errc{}) ranks.push_back(rank);
    at = next;
    if (at == end) break;
  }
  return ranks;
}

std::string members_text(const std::vector<int32_t>& ranks) {
  std::string members;
  for (size_t i = 0; i < ranks.size(); ++i) members += (i == 0 ? "" : ",") + std::to_string(ranks[i]);
  return members;
}

uint64_t process_group_id(std::string_view comm_name, const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return 0;
  // Written out: std::hash may differ between builds, and ids of all ranks have to agree.
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  std::string text(comm_name);
  text += '\0';
  text += members_text(ranks);
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  // Never 0, which stands for unknown.
  return hash | uint64_t{hash == 0};
}

int32_t parse_nccl_version(std::string_view text) {
  int32_t parts[3] = {0, 0, 0};
  size_t part = 0;
  // Up to 999 in each part: more is of no release, and would overflow.
  for (const char c : text) {
    if (c == '.') {
      if (++part == 3) break;
    } else if (!is_digit(c) || parts[part] > 99) {
      break;
    } else {
      parts[part] = parts[part] * 10 + (c - '0');
    }
  }
  return parts[0] * 10'000 + parts[1] * 100 + parts[2];
}

std::string nccl_version_text(int32_t version) {
  if (version <= 0) return "-";
  int32_t base = version >= 10000 ? 10000 : 1000;  // NCCL wrote 2.8 as 2800, and from 2.9 on 20900
  return std::to_string(version / base) + "." + std::to_string(version % base / 100) + "." +
         std::to_string(version % 100);
}

int32_t rank_named_in(std::string_view name) {
  const size_t word = name.rfind("rank");
  if (word == std::string_view::npos) return -1;
  // Hosts are called frank, too.
  if (word > 0 && std::isalpha(static_cast<unsigned char>(name[word - 1])) != 0) return -1;
  size_t digit = word + 4;
  if (digit < name.size() && (name[digit] == '-' || name[digit] == '_')) ++digit;
  int32_t rank = -1;
  if (digit < name.size() && is_digit(name[digit]))
    std::from_chars(name.data() + digit, name.data() + name.size(), rank);
  return rank;
}

int32_t rank_of_file_name(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  int32_t rank = rank_named_in(name);
  if (rank >= 0) return rank;
  size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  const auto parts = [](char c) { return c == '_' || c == '-' || c == '.'; };
  const bool stands_alone =
      begin < end && (begin == 0 || parts(name[begin - 1])) && (end == name.size() || name[end] == '.');
  if (stands_alone) std::from_chars(name.data() + begin, name.data() + end, rank);
  return rank;
}

uint64_t common_count(std::string_view func, uint64_t in, uint64_t out) {
  // A rank's own part: of a scatter and a reduce-scatter it comes out, of the others it goes in. Parts of an
  // all-to-all may differ between ranks.
  if (func == "AlltoAll") return 0;
  if (func == "Scatter" || func == "ReduceScatter") return out;
  return in != 0 || func == "Gather" ? in : out;
}

uint32_t GroupIndex::of(int64_t seq) {
  if (seq < 1 || seq >= kMostOperations) return next_++;
  // Operations that share a number lie side by side, so each beyond the first moves all later ones up by one.
  const uint32_t index = static_cast<uint32_t>(seq - 1) + shared_;
  if (index < next_) ++shared_;
  next_ = std::max(index, next_) + 1;
  return next_ - 1;
}

}  // namespace lockstep::model
