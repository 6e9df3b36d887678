// SPDX-License-Identifier: Apache-2.0
// One process of the run as locations: its host threads with their calls and steps, its GPUs' streams with
// their kernels, and the operations of its ranks (see communication.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "exporters/common/process_slices.h"
#include "exporters/otf2/archive.h"
#include "exporters/otf2/communication.h"
#include "exporters/otf2/definitions.h"
#include "model/trace.h"

namespace lockstep::exporters::otf2 {

class ProcessEvents {
 public:
  // `number`: the rank, or a free one.
  ProcessEvents(const model::Trace& trace, int64_t number, Archive& archive, Definitions& definitions);
  // Returns how many events it wrote. What could not be drawn of calls and kernels is a loss in `run`.
  uint64_t write(Omitted& omitted, model::Trace& run);
  OTF2_LocationGroupRef group() const { return process_; }

 private:
  struct Open {
    int64_t end;
    OTF2_RegionRef region;
  };
  void define_process();
  OTF2_LocationRef define_location(const common::Track& track);
  OTF2_LocationGroupRef device_group(int64_t pid);
  uint64_t write_track(OTF2_LocationRef location, const std::vector<const common::Slice*>& slices);
  OTF2_RegionRef region(const common::Slice& slice);
  OTF2_RegionRef call_region(uint32_t call);
  OTF2_RegionRef named(std::string_view name, OTF2_RegionRole role, OTF2_Paradigm paradigm) {
    return definitions_.region(definitions_.text(name), role, paradigm);
  }
  // The region of an operation on the host, or on the GPU.
  OTF2_RegionRef operation_region(uint32_t op, bool on_gpu);
  void write_marks(const std::vector<OTF2_LocationRef>& locations);

  const model::Trace& trace_;
  const int64_t number_;
  Archive& archive_;
  Definitions& definitions_;
  common::ProcessSlices slices_;
  std::string who_;
  OTF2_LocationGroupRef process_ = 0;
  OTF2_Paradigm gpu_paradigm_;
  std::vector<std::pair<int64_t, OTF2_LocationGroupRef>> devices_;  // by the pid that tracks have
  // By text, by shape, and by shape, whether declared and where; undefined: not met yet.
  std::vector<OTF2_RegionRef> kernel_regions_, range_regions_, api_regions_, operation_regions_;
};

}  // namespace lockstep::exporters::otf2
