// SPDX-License-Identifier: Apache-2.0
// Writes one process of the job as trace events: names of its tracks, slices with their arguments, instants, the arrows
// from host to GPU, and the points of the arrows between ranks.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "exporters/chrome_json/flows.h"
#include "exporters/chrome_json/json_writer.h"
#include "exporters/chrome_json/op_text.h"
#include "exporters/chrome_json/process_slices.h"
#include "model/comms_id.h"
#include "model/trace.h"

namespace lockstep::exporters::chrome_json {

class SliceWriter {
 public:
  // `first_correlation` numbers the trace's first op, and launches behind the ops: correlations are unique in the file.
  SliceWriter(const model::Trace& trace, ProcessSlices& slices, int64_t base_ns, uint64_t first_correlation,
              JsonWriter& json, Flows& flows);
  // Returns the number of events written.
  uint64_t write();

 private:
  void write_metadata();
  void write_marks();
  void begin(const Slice& slice, std::string_view category, std::string_view quoted_name);
  void write_slice(const Slice& slice);
  void write_record_param_comms(const Slice& slice);
  void write_kernel(const Slice& slice);
  void write_other_kernel(const Slice& slice);
  void write_launch(const Slice& slice);
  void write_call(const Slice& slice);
  void write_channel(const Slice& slice);
  void write_proxy_op(const Slice& slice);
  void write_proxy_step(const Slice& slice);
  void write_proxy_ctrl(const Slice& slice);
  void write_net_event(const Slice& slice);
  void write_counts(uint32_t op, const OpText& text);
  void write_identity(uint32_t op);
  bool has_own_launch(uint32_t op) const;
  void unfinished(int64_t end_ns);
  void host_to_gpu(const Slice& slice, uint64_t correlation, char phase);
  uint64_t launch_correlation(uint32_t launch) const {
    return first_correlation_ + trace_.ops.size() + launch;
  }
  void prepare_ops();

  const model::Trace& trace_;
  ProcessSlices& slices_;
  const int64_t base_ns_;
  const uint64_t first_correlation_;
  JsonWriter& json_;
  Flows& flows_;
  OpTexts texts_;
  std::vector<std::string> track_places_;  // ,"pid":..,"tid":..,"ts":
  std::vector<std::string> call_names_;    // quoted, by shape
  std::vector<std::string> event_names_;   // quoted, by event kind
  std::vector<int64_t> torch_seq_;         // by op; 0 unknown
  std::vector<uint64_t> torch_ids_;
  std::vector<uint64_t> rank_keys_;                     // by op: equal on all ranks of one operation; 0 none
  std::unordered_map<int64_t, uint32_t> op_by_launch_;  // first op of a kernel launch, by its time
  std::vector<uint32_t> arrow_;  // by launch: its first kernel that is no operation's; kNoRow none
  uint64_t events_ = 0;
};

}  // namespace lockstep::exporters::chrome_json
