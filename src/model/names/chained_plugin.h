// SPDX-License-Identifier: Apache-2.0
// How a trace says that a second profiler plugin was called with each event: by a mark of its process, which
// begins so and goes on with the plugin's name, version and file.
#pragma once
#include <string_view>

namespace lockstep::model {

inline constexpr std::string_view kChainedPluginMark = "chained profiler plugin: ";

}  // namespace lockstep::model
