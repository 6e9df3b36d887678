// SPDX-License-Identifier: Apache-2.0
// What PyTorch's own files say of ranks and groups, in the words that the model uses: dumps of the Flight
// Recorder and traces of the profiler of one job give one group one name and one list of members.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::model {

// "default_pg", "dp0 (group 5)" or "group 5".
std::string process_group_name(std::string_view name, std::string_view description);
// The group that such a name is of; an empty `name`: of none.
struct ProcessGroup {
  std::string_view name, description;  // of the text that was asked about, or constant
};
ProcessGroup process_group_of(std::string_view comm_name);
// "[0, 1, 2]", or any text with numbers in it. At most 4 million. A list that PyTorch cut ("[0, 1, ..., 63]")
// gives the ranks that are left.
std::vector<int32_t> parse_ranks(std::string_view text);
// "0,1,2": the form of comms.members.
std::string members_text(const std::vector<int32_t>& ranks);
// An id for comms.comm_id, equal on all members; 0 (unknown) while the members are not known.
uint64_t process_group_id(std::string_view comm_name, const std::vector<int32_t>& ranks);
// "2.28.9" as ncclGetVersion gives it: 22809; 0 if it says none.
int32_t parse_nccl_version(std::string_view text);
// "2.28.9" for 22809; "-" for 0.
std::string nccl_version_text(int32_t version);
// The rank in a file's name: behind the word ("rank_12", "kineto_rank3.json"), else a last number
// that stands alone ("fr_3", "trace_5.json"). -1: it has none; a number that ends a word ("resnet50.json") is
// none.
int32_t rank_of_file_name(const std::string& path);
// The same of the word alone.
int32_t rank_named_in(std::string_view name);
// Elements of one rank that all ranks of an operation have in common, from what its tensors hold in all; 0
// where one rank may have more than another without being wrong. `func` in NCCL's spelling.
uint64_t common_count(std::string_view func, uint64_t in, uint64_t out);

// Indexes of a group's collectives, asked for in the order of the calls.
class GroupIndex {
 public:
  // From PyTorch's number of the operation in its group, counted from 1 over all functions and equal on all
  // ranks; what was coalesced shares one. A number that is none (below 1) is the next.
  uint32_t of(int64_t seq);

 private:
  uint32_t next_ = 0, shared_ = 0;
};

}  // namespace lockstep::model
