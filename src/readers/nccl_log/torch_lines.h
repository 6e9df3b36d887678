// SPDX-License-Identifier: Apache-2.0
// What PyTorch's watchdogs, its desync report and the launcher say about operations that did not end and
// processes that did. Several of these lines say the same in other words; each is kept once.
//
//   [rank3]:[E1118 20:32:23.955 ProcessGroupNCCL.cpp:629] [PG ID 2 PG GUID 5(mesh_tp) Rank 1] words
//    global rank                                                group 5, called mesh_tp, and the rank in it
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "readers/nccl_log/log_model.h"
#include "readers/nccl_log/pattern.h"

namespace lockstep::readers::nccl_log {

// Lines into TorchLines, in the order of a file; `begin_file` between files. Memory is bounded by
// LogModel::kTorchLinesMost. One thread.
class TorchParser {
 public:
  using Here = std::function<Evidence()>;
  void begin_file();
  // Whether the next line counts whatever words it has.
  bool follows() const { return in_snapshot_ || in_stack_ || report_left_ > 0 || !broken_.empty(); }
  // False: the line is none of these. `here` is asked only where the line is kept.
  bool line(std::string_view text, const Here& here);

  // A rank's program raised an exception. False: the rank is not known.
  bool raised(int32_t rank, std::string_view text, const Here& here);

  std::vector<TorchLine> take() {
    end_report();
    end_announcements();
    return std::move(lines_);
  }
  uint64_t beyond() const { return beyond_; }

 private:
  bool sentence(std::string_view text, const Here& here);
  bool broken(std::string_view text, const Here& here);
  bool watchdog(std::string_view text, TorchLine& line) const;
  bool error(std::string_view text, TorchLine& line) const;
  bool consequence(std::string_view text, TorchLine& line) const;
  bool desync(std::string_view text, TorchLine& line);
  bool launcher(std::string_view text, TorchLine& line, const Here& here);
  bool report(std::string_view text, TorchLine& line, const Here& here);
  void end_report();
  bool announcement(std::string_view text, const Here& here);
  void end_announcements();
  bool stack(std::string_view text, TorchLine& line);
  void keep(TorchLine line, const Here& here);

  std::vector<TorchLine> lines_;
  std::unordered_set<size_t> seen_;         // hashes of what lines_ says
  std::map<int32_t, TorchLine> announced_;  // by rank; of all files, as each may be of one rank
  size_t ranks_ = 0;                        // in the lists of lines_
  uint64_t beyond_ = 0;
  int32_t last_rank_ = -1;                 // of the last line of this file that named one
  static constexpr int kReportLines = 64;  // of the launcher, from one failure to the next
  int report_left_ = 0;
  std::string broken_;                           // the begin of a line whose rest may stand on the next
  TorchLine exit_;                               // of the launcher's report that is being read; rank -1: none
  bool is_root_cause_ = false;                   // and what it calls the first
  int64_t snapshot_seq_ = -1;                    // of the desync report's list that is being read
  bool in_snapshot_ = false, in_stack_ = false;  // lines without a mark of their own follow
};

}  // namespace lockstep::readers::nccl_log
