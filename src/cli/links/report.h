// SPDX-License-Identifier: Apache-2.0
// What `lockstep links` found, as text and as JSON.
#pragma once
#include <string>

#include "analysis/analysis.h"
#include "base/text/json_text.h"
#include "base/text/style.h"
#include "links/record.h"

namespace lockstep::cli::links {

// `diagnosis`: what links::judge said of `record`, in order.
std::string report_text(const lockstep::links::LinksRecord& record, const analysis::Diagnosis& diagnosis,
                        const Style& style, bool verbose);
Json report_json(const lockstep::links::LinksRecord& record, const analysis::Diagnosis& diagnosis);

}  // namespace lockstep::cli::links
