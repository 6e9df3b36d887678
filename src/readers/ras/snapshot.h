// SPDX-License-Identifier: Apache-2.0
// A snapshot out of its JSON. Of one that ends early or is no JSON from some place on, the ranks before that
// are kept.
#pragma once
#include <optional>

#include "readers/ras/documents.h"
#include "readers/ras/ras_model.h"

namespace lockstep::readers::ras {

// Nothing: an object that is no snapshot.
std::optional<Snapshot> make_snapshot(const Document& document);

}  // namespace lockstep::readers::ras
