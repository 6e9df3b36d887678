// SPDX-License-Identifier: Apache-2.0
// The definition of the message that bears the numbers of an event, as every timeline carries it for its
// readers: a FileDescriptorSet with message lockstep.timeline.Arguments and the extension `lockstep` of
// Perfetto's TrackEvent.
#pragma once
#include <string>

namespace lockstep::exporters::perfetto {

std::string arguments_descriptor_set();

}  // namespace lockstep::exporters::perfetto
