// SPDX-License-Identifier: Apache-2.0
// What a report holds of recordings of eight H200s, in digest. tests/data/straggler: rank 3 sleeps 20 ms
// before the forward pass from step 2 on. tests/data/runs/hang: rank 5 never calls the 9th all-reduce of all.
#include <gtest/gtest.h>

#include "golden/tape_run.h"
#include "job/gather/gather.h"
#include "report/report_data.h"
#include "tests/support/places.h"

namespace lockstep::golden {
namespace {

using lockstep::Json;

Json report_of(const std::string& folder) {
  std::vector<std::string> tapes;
  for (int rank = 0; rank < 8; ++rank)
    tapes.push_back(LOCKSTEP_SOURCE_DIR "/" + folder + "/rank" + std::to_string(rank) + ".jsonl.gz");
  auto tape = TapeRun::open(tapes, true);
  EXPECT_TRUE(tape) << tape.error().message();
  if (!tape) return {};
  auto job = job::gather::gather(**tape, {});
  EXPECT_TRUE(job);
  verdict::DiagnosedRun run;
  verdict::Evidence& evidence = run.evidence.emplace_back();
  evidence.source = "capture files";
  evidence.job = *std::move(job);
  run.diagnosis = analysis::diagnose(*evidence.job);
  evidence.matches = job::match::count_matches(*evidence.job);
  return report::report_data(run, {.paths = {folder}, .made_ns = 0, .refresh_ns = std::nullopt});
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
    text += card["title"].get<std::string>() + ", who " + card["who"].dump() + ", since " +
            ms(card["at_ns"]) + "\n";
    if (!card["operation"].is_null())
      text += operation_digest(data["operations"]["list"][card["operation"].get<size_t>()]);
  }
  text +=
      "compared " + data["lateness"]["compared"].dump() + " by " + data["lateness"]["times"].dump() + "\n";
  for (const Json& row : data["lateness"]["rows"]) {
    const Json& totals = data["lateness"]["totals"];
    const auto who = row["who"].get<size_t>();
    text += row["label"].get<std::string>() + ": ops " + totals["ops"][who].dump() + " waiting " +
            ms(totals["waiting_ns"][who]) + " blamed " + ms(totals["blamed_ns"][who]) + "\n";
  }
  const Json& steps = data["steps"]["list"];
  text += "steps of " + ms(steps["length_ns"][0]) + ": lost " + list_ms(steps["lost_ns"]) + ", worst " +
          steps["worst"].dump() + "\n";
  for (const Json& page : {data["bandwidth"], data["network"], data["steps"]["split"]}) {
    if (page.contains("missing")) text += page["missing"].get<std::string>().substr(0, 60) + "\n";
  }
  return text;
}

TEST(ReportOfRecordings, ShowsTheStraggler) {
  EXPECT_EQ(
      digest(report_of("tests/data/straggler")),
      R"(rank 3 (GPU 3 of node0, pid 1003) has been slow to launch since step 2, costing the other ranks about 20.5 ms per step (3.4 % of the run); first in operation 2 of 0xaa13534ff18c1e4 of 2 ranks (its 3rd AllReduce)
Host late, who [3], since 9195.6
Operation 2 of 0xaa13534ff18c1e4 of 2 ranks (its 3rd AllReduce), 256 KiB, at 9174.6 lost 20.9
  called 0.0 20.9
  late 0.0 20.9
  waiting 20.9 0.0
  state done done
compared 249 by "mixed"
rank 0: ops 126 waiting 182.5 blamed 6.7
rank 1: ops 114 waiting 160.2 blamed 7.6
rank 2: ops 125 waiting 168.7 blamed 0.5
rank 3: ops 113 waiting 7.2 blamed 125.0
rank 4: ops 126 waiting 347.5 blamed 11.1
rank 5: ops 114 waiting 373.0 blamed 0.0
rank 6: ops 126 waiting 221.2 blamed 0.3
rank 7: ops 114 waiting 174.7 blamed 9.6
steps of 3453.1: lost 0.8 6.7 21.5 21.1 20.4 20.3 20.4 20.5, worst [3,0,3,3,3,3,3,3]
No transfers over the network were recorded: no communicator
How much of a step computes and how much communicates is not
)");
}

TEST(ReportOfRecordings, ShowsTheHang) {
  EXPECT_EQ(
      digest(report_of("tests/data/runs/hang")),
      R"(rank 5 (GPU 5 of node0, pid 1005) never called operation 8 of world 0x27946d05ec4ea4ba (its 9th AllReduce); 7 ranks have waited 4.87 s for it
Never joined, who [5], since 1430.5
Operation 8 of world 0x27946d05ec4ea4ba (its 9th AllReduce), 1 MiB, at 890.8 lost -
  called 539.5 0.0 539.3 0.1 539.2 - 539.2 0.2
  late - - - - - - - -
  waiting - - - - - - - -
  state running running running running running not called running running
compared 9 by "gpu"
rank 0: ops 9 waiting 9.1 blamed 0.0
rank 1: ops 8 waiting 14.3 blamed 0.0
rank 2: ops 9 waiting 10.8 blamed 0.0
rank 3: ops 8 waiting 7.5 blamed 0.0
rank 4: ops 9 waiting 1.8 blamed 0.5
rank 5: ops 8 waiting 11.7 blamed 0.0
rank 6: ops 9 waiting 23.5 blamed 0.0
rank 7: ops 8 waiting 11.3 blamed 0.0
steps of 7.6: lost 0.0 0.4 0.1 0.0 0.0 0.0 0.0 0.0 0.0 0.0, worst [null,4,4,null,null,null,null,null,null,null]
No transfers over the network were recorded: no communicator
How much of a step computes and how much communicates is not
)");
}

}  // namespace
}  // namespace lockstep::golden
