// SPDX-License-Identifier: Apache-2.0
#include "cli/json_text.h"

#include <cstdio>

namespace lockstep::cli {

std::string json_text(const Json& document) {
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string json_line(const Json& document) {
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

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

Json known(int64_t number) { return number < 0 ? Json(nullptr) : Json(number); }

Json id_json(uint64_t id) {
  if (id == 0) return nullptr;
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(id));
  return text;
}

}  // namespace lockstep::cli
