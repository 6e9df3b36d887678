// SPDX-License-Identifier: Apache-2.0
#include "capture/rocp/markers.h"

#include "capture/cuda/ranges.h"

namespace lockstep::capture::rocp {

void on_marker(CallbackRecord record, uint64_t*, void*) {
  const auto* marker = static_cast<const Marker*>(record.payload);
  if (record.kind != kMarkers || marker == nullptr || marker->bytes < sizeof *marker) return;
  const bool is_enter = record.phase == kEnter;
  if (record.operation == kPush && is_enter)
    cuda::push_range(0, cuda::range_name_of(marker->text));
  else if (record.operation == kPop && is_enter)
    cuda::pop_range(0);
  else if (record.operation == kStartRange && record.phase == kExit)
    cuda::start_numbered_range(marker->returned, cuda::range_name_of(marker->text));
  else if (record.operation == kStopRange && is_enter)
    cuda::end_numbered_range(marker->range);
}

}  // namespace lockstep::capture::rocp
