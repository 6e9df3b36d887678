// SPDX-License-Identifier: Apache-2.0
#include "input/run_json.h"

namespace lockstep::input {

// All kinds, those that did not occur with 0: documents of all runs have the same keys.
Json events_json(const model::EventCounts& events) {
  Json document = Json::object();
#define EVENT(number, name) document[#name] = events[number];
#include "model/event_kind.def"
#undef EVENT
  return document;
}

Json losses_json(const RunOverview& run) {
  Json list = Json::array();
  for (const LossLine& loss : run.losses) {
    list.push_back({{"stage", loss.stage},
                    {"kind", loss.kind},
                    {"count", loss.count},
                    {"process", known(loss.process)},
                    {"detail", loss.detail}});
  }
  return list;
}

}  // namespace lockstep::input
