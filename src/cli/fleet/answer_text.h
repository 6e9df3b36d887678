// SPDX-License-Identifier: Apache-2.0
// What a store answered, as people and as programs read it. Names in it may be anything.
#pragma once
#include <string>

#include "base/text/json_text.h"
#include "store/fleet_questions.h"

namespace lockstep::cli::fleet {

// A sentence and a table.
std::string answer_text(const store::FleetQuestion& question, const store::FleetAnswer& answer,
                        uint32_t days);
// docs/schemas/fleet.v1.json
Json answer_json(const store::FleetQuestion& question, const store::FleetAnswer& answer, uint32_t days);

}  // namespace lockstep::cli::fleet
