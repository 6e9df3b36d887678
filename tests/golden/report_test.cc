// SPDX-License-Identifier: Apache-2.0
// What a report holds of recordings of eight H200s, in digest. tests/data/straggler: rank 3 sleeps 20 ms before the forward
// pass from step 2 on. tests/data/runs/hang: rank 5 never calls the 9th all-reduce of all.
#include <gtest/gtest.h>

#include "analysis/gather/gather.h"
#include "cli/report/report_data.h"
#include "golden/tape_run.h"

namespace lockstep::golden {
namespace {

using cli::Json;

Json report_of(const std::string& folder) {
  std::vector<std::string> tapes;
  for (int rank = 0; rank < 8; ++rank)
    tapes.push_back(LOCKSTEP_SOURCE_DIR "/" + folder + "/rank" + std::to_string(rank) + ".jsonl.gz");
  auto tape = TapeRun::open(tapes, true);
  EXPECT_TRUE(tape) << tape.error().message();
  if (!tape) return {};
  auto job = analysis::gather::gather(**tape, {});
  EXPECT_TRUE(job);
  cli::diagnose::DiagnosedRun run;
  cli::diagnose::Evidence& evidence = run.evidence.emplace_back();
  evidence.source = "capture files";
  evidence.job = *std::move(job);
  run.diagnosis = analysis::diagnose(*evidence.job);
  evidence.matches = analysis::match::count_matches(*evidence.job);
  return cli::report::report_data(run, {.paths = {folder}, .made_ns = 0, .refresh_ns = std::nullopt});
}

std::string ms(const Json& ns) {
  char text[32];
  if (ns.is_null()) return "-";
  std::snprintf(text, sizeof text, "%.1f", ns.get<double>() / 1e6);
  return text;
}

// Milliseconds of a column.
std::string list_ms(const Json& column) {
  std::string text;
  for (const Json& ns : column) text += (text.empty() ? "" : " ") + ms(ns);
  return text;
}

std::string operation_digest(const Json& operation) {
  const Json& ranks = operation["ranks"];
  std::string text = operation["title"].get<std::string>() + ", at " + ms(operation["begin_ns"]) + " lost " +
                     ms(operation["lost_ns"]) + "\n  called " + list_ms(ranks["called_ns"]) + "\n  late " +
                     list_ms(ranks["late_ns"]) + "\n  waiting " + list_ms(ranks["waiting_ns"]) + "\n  state";
  for (const Json& state : ranks["state"]) text += " " + state.get<std::string>();
  return text + "\n";
}

std::string digest(const Json& data) {
  std::string text = data["verdict"]["headline"].get<std::string>() + "\n";
  for (const Json& card : data["verdict"]["cards"]) {
    text += card["title"].get<std::string>() + ", who " + card["who"].dump() + ", since " + ms(card["at_ns"]) + "\n";
    if (!card["operation"].is_null())
      text += operation_digest(data["operations"]["list"][card["operation"].get<size_t>()]);
  }
  text += "compared " + data["lateness"]["compared"].dump() + " by " + data["lateness"]["times"].dump() + "\n";
  for (const Json& row : data["lateness"]["rows"]) {
    const Json& total = row["total"];
    text += row["label"].get<std::string>() + ": ops " + total["ops"].dump() + " waiting " + ms(total["waiting_ns"]) +
            " blamed " + ms(total["blamed_ns"]) + "\n";
  }
  const Json& steps = data["steps"]["list"];
  text += "steps of " + ms(steps["length_ns"][0]) + ": lost " + list_ms(steps["lost_ns"]) + ", worst " +
          steps["worst"].dump() + "\n";
  for (const Json& page : {data["bandwidth"], data["network"], data["steps"]["split"]}) {
    if (page.contains("missing")) text += page["missing"].get<std::string>().substr(0, 60) + "\n";
  }
  return text;
}

TEST(ReportOfRecordings, ShowsTheStraggler) { EXPECT_EQ(digest(report_of("tests/data/straggler")), ""); }

TEST(ReportOfRecordings, ShowsTheHang) { EXPECT_EQ(digest(report_of("tests/data/runs/hang")), ""); }

}  // namespace
}  // namespace lockstep::golden
