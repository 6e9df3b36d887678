// SPDX-License-Identifier: Apache-2.0
// The figures of a report are those of `summary` and `diagnose`; large runs keep their limits; what is not
// known says why.
#include "report/report_data.h"

#include <gtest/gtest.h>

#include "analysis/summary/across.h"
#include "analysis/testing/job_builder.h"
#include "model/event_kind.h"
#include "report/diagnosis_json.h"
#include "report/page.h"
#include "report/pages.h"

namespace lockstep::report {
namespace {

using analysis::testing::at_ms;
using analysis::testing::JobBuilder;
using verdict::DiagnosedRun;

verdict::DiagnosedRun diagnosed(model::Job job) {
  verdict::DiagnosedRun run;
  verdict::Evidence& evidence = run.evidence.emplace_back();
  evidence.source = "capture files";
  evidence.job = std::move(job);
  run.diagnosis = analysis::diagnose(*evidence.job);
  evidence.matches = job::match::count_matches(*evidence.job);
  return run;
}

Json data_of(const verdict::DiagnosedRun& run) {
  return report_data(run, {.paths = {"jobs/run1/"}, .made_ns = at_ms(0), .refresh_ns = std::nullopt});
}

// Ranks of which one comes `late_ms` after the others, again and again.
JobBuilder late_job(uint32_t ranks, uint32_t per_host, uint32_t late_rank, uint32_t ops = 40) {
  JobBuilder builder(ranks, per_host);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (uint32_t i = 0; i < ops; ++i) {
      const double called = i * 20.0 + (rank == late_rank ? 5 : 0.001 * rank);
      builder.call(
          rank, world,
          {.called_ms = called, .bytes = 64 << 20, .gpu_start_ms = called + 0.1, .gpu_end_ms = i * 20.0 + 8});
    }
    builder.process(rank).row.first_ns = at_ms(0);
    builder.process(rank).row.last_ns = at_ms(ops * 20.0);
  }
  return builder;
}

TEST(ReportData, FollowsTheFiguresOfSummaryAndDiagnose) {
  const verdict::DiagnosedRun run = diagnosed(late_job(4, 4, 2).build());
  const Json data = data_of(run);
  EXPECT_EQ(data["diagnosis"].dump(), diagnosis_json(run).dump());
  const analysis::summary::AcrossFigures figures = analysis::summary::across(*run.evidence[0].job);
  const Json& rows = data["lateness"]["rows"];
  ASSERT_EQ(rows.size(), figures.ranks.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const analysis::summary::WaitFigures& expected = figures.ranks[i];
    const Json& totals = data["lateness"]["totals"];
    EXPECT_EQ(totals["ops"][i], expected.ops);
    EXPECT_NEAR(totals["waiting_ns"][i].get<double>(), expected.waiting_ns, 1);
    EXPECT_NEAR(totals["moving_ns"][i].get<double>(), expected.moving_ns, 1);
    EXPECT_NEAR(totals["blamed_ns"][i].get<double>(), expected.blamed_ns, 1);
    double waiting = 0, blamed = 0;
    uint64_t ops = 0;
    for (size_t column = 0; column < rows[i]["ops"].size(); ++column) {
      if (rows[i]["ops"][column].is_null()) continue;
      waiting += rows[i]["waiting_ns"][column].get<double>();
      blamed += rows[i]["blamed_ns"][column].get<double>();
      ops += rows[i]["ops"][column].get<uint64_t>();
    }
    EXPECT_EQ(ops, expected.ops) << "every operation lies in one column";
    EXPECT_NEAR(waiting, expected.waiting_ns, 300);
    EXPECT_NEAR(blamed, expected.blamed_ns, 300);
  }
  ASSERT_EQ(data["bandwidth"]["rates"].size(), figures.rates.size());
  EXPECT_EQ(data["bandwidth"]["rates"][0]["busbw_gbps"], figures.rates[0].busbw);
  EXPECT_LE(data["bandwidth"]["rates"][0]["slowest"]["busbw_gbps"].get<double>(), figures.rates[0].busbw_low);
  EXPECT_NEAR(data["comms"][0]["waiting_ns"].get<double>(), figures.comms[0].waiting_ns, 1);
  EXPECT_EQ(data["steps"]["list"]["number"].size(), figures.steps.length.count + 1);
  EXPECT_EQ(data["steps"]["figures"]["p99_ns"], figures.steps.length.p99_ns);
  EXPECT_EQ(data["steps"]["figures"]["exposed_at_most_p50_ns"], figures.steps.exposed_at_most.p50_ns);
  EXPECT_TRUE(data["steps"]["figures"]["exposed_p50_ns"].is_null());
}

TEST(ReportData, AFindingLeadsToItsRankRowAndOperation) {
  const verdict::DiagnosedRun run = diagnosed(late_job(4, 4, 2).build());
  ASSERT_TRUE(run.diagnosis.verdict);
  const Json data = data_of(run);
  const Json& card = data["verdict"]["cards"][data["verdict"]["finding"].get<size_t>()];
  EXPECT_EQ(card["class"], "host-late");
  EXPECT_EQ(card["title"], "Host late");
  EXPECT_EQ(card["what"], "A rank launches its operations late, step after step.");
  EXPECT_EQ(card["who"], Json::array({2}));
  EXPECT_EQ(card["rows"], Json::array({2}));
  const Json& operation = data["operations"]["list"][card["operation"].get<size_t>()];
  EXPECT_EQ(operation["op_index"], data["diagnosis"]["verdict"]["op_index"]);
  EXPECT_EQ(operation["why"][0], "finding");
  EXPECT_EQ(operation["ranks"]["named"], Json::array({0, 0, 1, 0}));
}

TEST(ReportData, AFindingOfAnotherRunLeadsNowhere) {
  verdict::DiagnosedRun run = diagnosed(late_job(4, 4, 2).build());
  const size_t verdict = *run.diagnosis.verdict;
  run.evidence[0].span = {at_ms(0), at_ms(800)};
  verdict::Evidence& dumps = run.evidence.emplace_back();
  dumps.source = "Flight Recorder dumps";
  run.diagnosis.findings[verdict].sources = {dumps.source};
  const auto card = [&](int64_t days) {
    run.evidence[1].span = {at_ms(0) - days * 86'400'000'000'000, at_ms(800) - days * 86'400'000'000'000};
    return data_of(run)["verdict"]["cards"][verdict];
  };
  EXPECT_EQ(card(0)["who"], Json::array({2}));
  const Json other = card(407);
  EXPECT_EQ(other["who"], Json::array());
  EXPECT_TRUE(other["at_ns"].is_null()) << "no time of this run";
  EXPECT_TRUE(other["operation"].is_null());
}

TEST(ReportData, TheWaterfallTellsWhoWaitedAndHowLongDataMoved) {
  const Json data = data_of(diagnosed(late_job(4, 4, 2).build()));
  const Json& operation = data["operations"]["list"].back();
  const Json& ranks = operation["ranks"];
  EXPECT_EQ(operation["begin_ns"], 39 * 20'000'000) << "rank 0 calls first";
  EXPECT_EQ(ranks["called_ns"][2], 5'000'000);
  EXPECT_EQ(ranks["gpu_start_ns"][2], 5'100'000);
  EXPECT_EQ(ranks["gpu_end_ns"][0], 8'000'000);
  EXPECT_EQ(operation["last_arrival_ns"], 5'100'000);
  EXPECT_NEAR(ranks["waiting_ns"][0].get<double>(), 5e6, 10);
  EXPECT_EQ(ranks["waiting_ns"][2], 0);
  EXPECT_NEAR(ranks["moving_ns"][0].get<double>(), 2.9e6, 10);
  EXPECT_EQ(operation["rest"]["waiting_ns"][2], ranks["waiting_ns"][0]) << "least, middle and most";
  // 2 * 3/4 of 64 MiB in the shortest time that a rank was in it.
  EXPECT_NEAR(operation["busbw_gbps"].get<double>(), 1.5 * (64 << 20) / 2.9e6, 0.01);
}

TEST(ReportData, WhoIsThroughHasNotWaitedForWhoComesLater) {
  JobBuilder builder(4, 4);
  const uint32_t world = builder.world();
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (uint32_t i = 0; i < 40; ++i) {
      const double called = i * 20.0 + (rank == 2 ? 9 : 0.001 * rank);
      builder.call(rank, world,
                   {.func = "Broadcast",
                    .called_ms = called,
                    .gpu_start_ms = called + 0.1,
                    .gpu_end_ms = called + 0.2});
    }
  }
  const Json data = data_of(diagnosed(builder.build()));
  const Json& operation = data["operations"]["list"].back();
  EXPECT_NEAR(operation["ranks"]["waiting_ns"][0].get<double>(), 1e5, 10) << "it ended before rank 2 came";
  EXPECT_EQ(operation["last_arrival_ns"], 9'100'000) << "not where rank 0 was through";
  EXPECT_NEAR(operation["lost_ns"].get<double>(), 3e5, 100);
  EXPECT_NEAR(data["lateness"]["totals"]["waiting_ns"][0].get<double>(), 40 * 1e5, 100);
}

TEST(ReportData, ClocksThatAreNotAlignedMakeNobodyLate) {
  constexpr int64_t kApartNs = 3'000'000'000;
  JobBuilder builder(4, 2);
  const uint32_t world = builder.world();
  const uint32_t pair = builder.comm("pair", {2, 3});
  builder.steps(world, 5, 1, 10, 0);
  for (uint32_t rank : {2u, 3u}) builder.call(rank, pair, {.called_ms = 60.0 + rank});
  for (uint32_t rank = 0; rank < 4; ++rank) builder.process(rank).row.first_ns = at_ms(0);
  model::Job job = builder.build(false);
  for (uint32_t rank : {2u, 3u}) {
    model::JobProcess& process = job.processes[rank];
    for (auto* times : {&process.ops.called_ns, &process.ops.enqueued_ns, &process.ops.launched_ns}) {
      for (int64_t& ns : *times) ns += kApartNs;
    }
    process.row.first_ns += kApartNs;
    process.row.last_ns += kApartNs;
    process.row.heartbeat_ns += kApartNs;
  }
  const Json data = data_of(diagnosed(std::move(job)));
  ASSERT_EQ(data["hosts"][1]["aligned"], false);
  EXPECT_TRUE(data["run"]["length_ns"].is_null());
  EXPECT_LT(data["run"]["least_length_ns"], 600'000'000) << "to the last heartbeat, half a second later";
  EXPECT_EQ(data["run"]["begin"], iso_time(at_ms(0))) << "by the reference host's clock";
  const Json& columns = data["lateness"]["columns"];
  EXPECT_LT(columns["begin_ns"].get<int64_t>() +
                columns["count"].get<int64_t>() * columns["width_ns"].get<int64_t>(),
            100'000'000);
  for (const Json& ns : data["processes"]["list"]["last_ns"]) EXPECT_LT(ns, 200'000'000);
  for (const Json& operation : data["operations"]["list"]) {
    const Json& ranks = operation["ranks"];
    for (const Json& ns : ranks["called_ns"]) EXPECT_LE(ns, 1'000'000);
    EXPECT_TRUE(operation["last_arrival_ns"].is_null() || operation["comm"] == pair);
    if (operation["comm"] == pair) {
      EXPECT_EQ(operation["length_ns"], ranks["launched_ns"][1]) << "one host, one clock";
      EXPECT_EQ(ranks["aligned"], Json::array({1, 1}));
    } else {
      EXPECT_TRUE(operation["length_ns"].is_null());
      EXPECT_EQ(ranks["aligned"], Json::array({1, 1, 0, 0}));
    }
  }
}

TEST(ReportData, TheDrillDownLeadsToTheWorstOperations) {
  const Json data = data_of(diagnosed(late_job(4, 4, 2).build()));
  const Json& drill = data["lateness"]["drill"];
  ASSERT_GT(drill["row"].size(), 0u);
  for (size_t i = 0; i < drill["row"].size(); ++i) {
    const Json& row = data["lateness"]["rows"][drill["row"][i].get<size_t>()];
    EXPECT_EQ(drill["who"][i], row["who"]);
    EXPECT_LE(drill["late_ns"][i], row["late_ns"][drill["column"][i].get<size_t>()]);
  }
}

TEST(ReportData, TheDrillDownOfALateRankHoldsWhatItWasLateIn) {
  JobBuilder builder = late_job(4, 4, 2);
  // Within one column, rank 0 waits four times for rank 1 and is then late itself, by less.
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (uint32_t i = 0; i < 5; ++i) {
      const double at = 801 + i * 0.4, late = i < 4 ? (rank == 1 ? 0.3 : 0) : (rank == 0 ? 0.1 : 0);
      builder.call(rank, 0, {.called_ms = at, .gpu_start_ms = at + late, .gpu_end_ms = at + 0.35});
    }
  }
  const Json data = data_of(diagnosed(builder.build()));
  const Json& drill = data["lateness"]["drill"];
  bool is_held = false;
  for (size_t i = 0; i < drill["row"].size(); ++i) {
    is_held =
        is_held || (drill["who"][i] == 0 && drill["op_index"][i] == 44 && drill["late_ns"][i] == 95'000);
    if (i == 0 || drill["row"][i] != drill["row"][i - 1] || drill["column"][i] != drill["column"][i - 1])
      continue;
    EXPECT_GT(drill["late_ns"][i - 1], 0) << "only the last of a cell is there for its waiting";
  }
  EXPECT_TRUE(is_held) << drill.dump();
}

TEST(ReportData, LargeRunsAreGroups) {
  constexpr uint32_t kRanks = 600;
  const verdict::DiagnosedRun run = diagnosed(late_job(kRanks, 2, 417, 8).build());
  const Json data = data_of(run);
  const Json& rows = data["lateness"]["rows"];
  ASSERT_LE(rows.size(), kRowsMost);
  uint64_t grouped = 0, ops = 0;
  bool seen = false;
  for (const Json& row : rows) {
    if (row["who"].is_null()) {
      grouped += row["of"].get<uint64_t>();
      ops += row["total"]["ops"].get<uint64_t>();
      EXPECT_EQ(row["worst"].size(), row["late_ns"].size());
      EXPECT_LE(row["late_min_ns"][0], row["late_ns"][0]);
      EXPECT_LE(row["late_ns"][0], row["late_max_ns"][0]);
    }
    seen = seen || row["who"] == 417;
  }
  EXPECT_EQ(grouped, kRanks) << "every rank is in one group";
  EXPECT_EQ(ops, kRanks * 8u);
  for (const auto& [name, column] : data["lateness"]["totals"].items())
    EXPECT_EQ(column.size(), kRanks) << name;
  const Json notes = data["lateness"]["notes"];
  EXPECT_TRUE(notes.back().get<std::string>().starts_with("64 of 600 processes have rows of their own: "))
      << notes;
  EXPECT_TRUE(seen) << "the late rank has a row of its own";
  for (const Json& operation : data["operations"]["list"]) {
    EXPECT_EQ(operation["ranks"]["who"].size(), 256u);
    EXPECT_EQ(operation["omitted"], kRanks - 256u);
    EXPECT_NE(std::find(operation["ranks"]["who"].begin(), operation["ranks"]["who"].end(), Json(417)),
              operation["ranks"]["who"].end());
  }
  EXPECT_LE(data["operations"]["list"].size(), kOperationsMost);
}

TEST(ReportData, ManyProcessesAreAllListedAndCostLittle) {
  constexpr uint32_t kRanks = 4096;
  model::Job job = late_job(kRanks, 2, 417, 8).build();
  for (model::JobProcess& process : job.processes)
    process.row.argv = job.strings.intern("python train.py --config " + std::string(200, 'x'));
  job.processes[9].lost = 7;
  job.processes[9].row.closed = 0;
  job.processes[9].row.last_ns = at_ms(40);
  job.processes[9].row.heartbeat_ns = at_ms(90);
  job.processes[9].open_calls.push_back({.func = job.strings.intern("AllReduce"), .start_ns = at_ms(30)});
  const Json data = data_of(diagnosed(std::move(job)));
  const Json& page = data["processes"];
  for (const auto& [name, column] : page["list"].items()) EXPECT_EQ(column.size(), kRanks) << name;
  const auto text = [&](const char* column) {
    return page["texts"].at(page["list"][column][9].get<size_t>());
  };
  EXPECT_EQ(text("argv"), "python train.py --config " + std::string(200, 'x'));
  EXPECT_EQ(text("open"), "AllReduce");
  EXPECT_EQ(page["list"]["open_ns"][9], 60'000'000) << "until its last sign of life";
  EXPECT_TRUE(page["list"]["open"][8].is_null());
  EXPECT_EQ(page["list"]["lost"][9], 7);
  EXPECT_EQ(page["list"]["closed"][8], 1);
  EXPECT_EQ(page["list"]["closed"][9], 0);
  EXPECT_EQ(page["list"]["named"][417], 1);
  const Json& world = data["topology"]["comms"][0];
  EXPECT_EQ(world["members"].size(), kRanks);
  EXPECT_EQ(world["members"].back(), kRanks - 1);
  EXPECT_LT(page.dump().size(), kRanks * 90u);
}

TEST(ReportData, ARankThatDidNotCallSaysSo) {
  JobBuilder builder(4);
  const uint32_t world = builder.world();
  builder.steps(world, 5, 1, 10, 1);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    if (rank != 3) builder.call(rank, world, {.called_ms = 60});
  }
  builder.all_killed_at(20'000);
  const Json data = data_of(diagnosed(builder.build()));
  EXPECT_NE(data["verdict"]["state"], "healthy");
  const Json& last = data["operations"]["list"].back();
  EXPECT_EQ(last["ranks"]["state"], Json::array({"called", "called", "called", "not called"}));
  EXPECT_EQ(last["called"], 3);
  EXPECT_TRUE(last["ranks"]["called_ns"][3].is_null());
}

TEST(ReportData, OfAHangAllAreKnownWhoWaitAlsoThroughOthers) {
  JobBuilder builder(4);
  const uint32_t world = builder.world(), pair = builder.comm("pair", {2, 3});
  builder.steps(world, 20, 1, 10, 1);
  builder.call(2, pair, {.called_ms = 210});
  for (uint32_t rank : {0u, 1u}) builder.call(rank, world, {.called_ms = 211});
  builder.all_killed_at(20'000);
  const Json data = data_of(diagnosed(builder.build()));
  const Json& card = data["verdict"]["cards"][data["verdict"]["finding"].get<size_t>()];
  EXPECT_EQ(card["who"], Json::array({3}));
  EXPECT_EQ(card["waiting"], Json::array({0, 1, 2}));
}

TEST(ReportData, WhatStillRunsHasNoLength) {
  JobBuilder builder(2);
  builder.steps(builder.world(), 5, 1, 10, 1);
  for (uint32_t rank = 0; rank < 2; ++rank)
    builder.call(rank, 0, {.called_ms = 60, .gpu_start_ms = 60.1, .gpu_end_ms = rank == 0 ? 61.0 : -1});
  builder.all_killed_at(20'000);
  const Json data = data_of(diagnosed(builder.build()));
  const Json& last = data["operations"]["list"].back();
  EXPECT_EQ(last["ranks"]["state"], Json::array({"done", "running"}));
  EXPECT_TRUE(last["length_ns"].is_null());
}

TEST(ReportData, WhatARuleOfLogsMeansIsASentence) {
  verdict::DiagnosedRun run;
  run.diagnosis.findings.emplace_back(analysis::FindingId::kFallbackNetSocket);
  EXPECT_EQ(data_of(run)["verdict"]["cards"][0]["what"], "data between hosts goes over TCP sockets");
}

TEST(ReportData, StepsAreThoseOfTheOverlapAnalysis) {
  JobBuilder builder = late_job(2, 2, 1);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (int64_t step = 0; step < 4; ++step) {
      builder.process(rank).gpu_steps.push_back({.number = step,
                                                 .begin_ns = at_ms(static_cast<double>(step) * 10),
                                                 .end_ns = at_ms(static_cast<double>(step) * 10 + 10),
                                                 .is_whole = true,
                                                 .devices = 1,
                                                 .computing_ns = 5'000'000,
                                                 .communicating_ns = 4'000'000,
                                                 .exposed_ns = 1'000'000 + 1'000'000 * rank,
                                                 .copying_ns = 500'000});
    }
  }
  const verdict::DiagnosedRun run = diagnosed(builder.build());
  const Json data = data_of(run);
  const analysis::summary::AcrossFigures figures = analysis::summary::across(*run.evidence[0].job);
  const Json& split = data["steps"]["split"];
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(split["average"][i]["exposed_ns"], figures.overlap[i].exposed_ns);
    EXPECT_EQ(split["average"][i]["hidden_ns"], figures.overlap[i].hidden_ns);
    const Json& entries = split["rows"][i]["entries"];
    ASSERT_EQ(entries["number"].size(), 4u);
    for (size_t step = 0; step < 4; ++step) {
      EXPECT_EQ(entries["computing_ns"][step].get<int64_t>() + entries["exposed_ns"][step].get<int64_t>() +
                    entries["copying_ns"][step].get<int64_t>() + entries["idle_ns"][step].get<int64_t>(),
                entries["length_ns"][step].get<int64_t>());
    }
  }
}

TEST(ReportData, StepsAreOfARankThatRecordedSome) {
  JobBuilder builder(3);
  builder.steps(builder.comm("pair", {1, 2}), 40, 0, 20, 5);
  const verdict::DiagnosedRun run = diagnosed(builder.build());
  const analysis::summary::AcrossFigures figures = analysis::summary::across(*run.evidence[0].job);
  EXPECT_EQ(figures.steps.source, "period");
  EXPECT_EQ(figures.steps.length.count, 39u);
  EXPECT_EQ(figures.steps.length.p50_ns, 20e6);
  const Json data = data_of(run);
  EXPECT_EQ(data["steps"]["source"], "period");
  EXPECT_EQ(data["steps"]["list"]["number"].size(), 40u);
  EXPECT_EQ(data["lateness"]["marks"].size(), 40u);
}

TEST(ReportData, ManySteps) {
  JobBuilder builder = late_job(2, 2, 1);
  for (int64_t step = 0; step < 1000; ++step) {
    builder.process(0).gpu_steps.push_back({.number = step,
                                            .begin_ns = at_ms(static_cast<double>(step)),
                                            .end_ns = at_ms(static_cast<double>(step) + 1),
                                            .is_whole = true,
                                            .computing_ns = 1000 * step});
  }
  const Json data = data_of(diagnosed(builder.build()));
  const Json& entries = data["steps"]["split"]["rows"][0]["entries"];
  ASSERT_EQ(entries["number"].size(), 300u);
  uint64_t steps = 0;
  double computing = 0;
  for (size_t i = 0; i < 300; ++i) {
    steps += entries["steps"][i].get<uint64_t>();
    computing += entries["computing_ns"][i].get<double>() * entries["steps"][i].get<double>();
  }
  EXPECT_EQ(steps, 1000u);
  EXPECT_NEAR(computing, 1000 * 999 * 500.0, 1000);
}

TEST(ReportData, NetworkWaitsAreThoseOfSummary) {
  JobBuilder builder = late_job(4, 2, 1);
  for (uint32_t rank : {0u, 1u}) {
    builder.process(rank).net_pairs.push_back({.member = builder.member(0, rank),
                                               .peer = static_cast<int32_t>(rank + 2),
                                               .is_send = true,
                                               .device = 0,
                                               .steps = 10,
                                               .bytes = 1 << 20,
                                               .gpu_ns = 1000,
                                               .peer_ns = 2000,
                                               .wire_ns = 3000,
                                               .busy_ns = 4000});
  }
  const verdict::DiagnosedRun run = diagnosed(builder.build());
  const Json data = data_of(run);
  const analysis::summary::AcrossFigures figures = analysis::summary::across(*run.evidence[0].job);
  const Json& pairs = data["network"]["pairs"];
  ASSERT_EQ(pairs.size(), figures.links.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(pairs[i]["peer_wait_ns"], figures.links[i].peer_wait_ns);
    EXPECT_EQ(pairs[i]["send_wait_ns"], figures.links[i].send_wait_ns);
    EXPECT_DOUBLE_EQ(pairs[i]["rate_gbps"].get<double>() * 1e9, figures.links[i].rate);
    EXPECT_EQ(data["network"]["axis"][pairs[i]["source"].get<size_t>()]["who"], figures.links[i].source);
  }
  EXPECT_EQ(data["topology"]["edges"].size(), 2u);
  EXPECT_EQ(data["topology"]["edges"][0]["transport"], "NET");
  EXPECT_EQ(data["topology"]["edges"][0]["bytes"], 1 << 20);
}

// What a rank sends to another on a communicator, by its numbers there: 100 transfers, each `step_us` long.
void add_transfers(model::Job& job, uint32_t comm, int32_t rank, int32_t peer, uint64_t step_bytes,
                   int64_t step_us) {
  constexpr int64_t kSteps = 100;
  const auto squared = static_cast<double>(step_us * 1000) * static_cast<double>(step_us * 1000);
  model::NetPair pair;
  pair.member = job.comms[comm].members[static_cast<size_t>(rank)];
  pair.peer = peer;
  pair.is_send = true;
  pair.device = 0;
  pair.steps = kSteps;
  pair.bytes = kSteps * step_bytes;
  pair.wire_ns = pair.busy_ns = kSteps * step_us * 1000;
  pair.wire_squares = kSteps * squared;
  pair.traffic.kind = model::number(model::EventKind::kColl);
  for (int64_t i = 0; i < kSteps; ++i) pair.wire.add(static_cast<float>(step_us * 1000));
  job.processes[job.members[pair.member].process].net_pairs.push_back(pair);
}

// Position of the only finding.
Json only_finding(const Json& data, const std::string& id) {
  const Json& findings = data["diagnosis"]["findings"];
  EXPECT_EQ(findings.size(), 1u) << findings;
  EXPECT_EQ(findings.empty() ? Json(nullptr) : findings[0]["id"], id);
  return 0;
}

TEST(ReportData, ASlowLinkIsThatOfItsCommunicatorAndDirection) {
  JobBuilder builder(32, 4);
  const uint32_t world = builder.world();
  const uint32_t mesh = builder.comm("mesh_dp:1", {1, 5, 9, 13, 17, 21, 25, 29});
  builder.steps(world, 5, 1, 10);
  model::Job job = builder.build();
  for (int32_t i = 0; i < 8; ++i) {
    const int32_t next = (i + 1) % 8, last = (i + 7) % 8;
    add_transfers(job, mesh, i, next, 512 << 10, i == 0 ? 40 : 10);
    add_transfers(job, mesh, i, last, 512 << 10, 10);
    add_transfers(job, world, 1 + 4 * i, 1 + 4 * next, 8, 10);
  }
  const Json data = data_of(diagnosed(std::move(job)));
  const Json finding = only_finding(data, "slow-link");
  size_t marked = 0;
  for (const Json& edge : data["topology"]["edges"]) {
    const bool is_it = edge["from"] == 1 && edge["to"] == 5 && edge["comm"] == mesh;
    EXPECT_EQ(edge["slow"], is_it ? finding : Json(nullptr)) << edge;
    marked += is_it;
  }
  for (const Json& pair : data["network"]["pairs"]) {
    const bool is_it = data["network"]["axis"][pair["source"].get<size_t>()]["who"] == 1 &&
                       data["network"]["axis"][pair["target"].get<size_t>()]["who"] == 5 &&
                       pair["comm"] == mesh;
    EXPECT_EQ(pair["finding"], is_it ? finding : Json(nullptr)) << pair;
    marked += is_it;
  }
  EXPECT_EQ(data["topology"]["edges"].size(), 24u);
  EXPECT_EQ(marked, 2u);
}

TEST(ReportData, ASlowWayBetweenHostsIsNotWithinThem) {
  JobBuilder builder(8, 2);
  const uint32_t world = builder.world();
  builder.steps(world, 5, 1, 10);
  builder.call(0, world, {.func = "Send", .called_ms = 60, .peer = 1});
  builder.call(1, world, {.func = "Recv", .called_ms = 60, .peer = 0});
  // Hosts 0 and 1, 2 and 3 send to each other.
  model::Job job = builder.build();
  for (int32_t rank = 0; rank < 8; ++rank)
    add_transfers(job, world, rank, rank ^ 2, 512 << 10, rank < 4 ? 40 : 10);
  const Json data = data_of(diagnosed(std::move(job)));
  const Json finding = only_finding(data, "slow-link.hosts");
  ASSERT_EQ(data["topology"]["edges"].size(), 9u);
  for (const Json& edge : data["topology"]["edges"])
    EXPECT_EQ(edge["slow"], edge["from"] < 4 && edge["source"] == "transfers" ? finding : Json(nullptr))
        << edge;
}

TEST(ReportData, ASlowLinkIsMarkedWhereHostsAreShown) {
  constexpr int32_t kRanks = 160, kPerHost = 8;
  JobBuilder builder(kRanks, kPerHost);
  const uint32_t world = builder.world();
  builder.steps(world, 5, 1, 10);
  model::Job job = builder.build();
  for (int32_t rank = 0; rank < kRanks; ++rank)
    add_transfers(job, world, rank, (rank + kPerHost) % kRanks, 512 << 10, rank == 10 ? 40 : 10);
  const Json data = data_of(diagnosed(std::move(job)));
  const Json finding = only_finding(data, "slow-link");
  EXPECT_EQ(data["network"]["by"], "host");
  ASSERT_EQ(data["network"]["pairs"].size(), size_t{kRanks / kPerHost});
  for (const Json& pair : data["network"]["pairs"]) {
    const bool is_it = data["network"]["axis"][pair["source"].get<size_t>()]["label"] == "node1";
    EXPECT_EQ(pair["finding"], is_it ? finding : Json(nullptr)) << pair;
  }
}

TEST(ReportData, EachPageSaysWhyItIsEmpty) {
  JobBuilder builder(1);
  builder.world();
  const Json data = data_of(diagnosed(builder.build()));
  for (const char* page : {"lateness", "operations", "bandwidth", "network"}) {
    ASSERT_TRUE(data[page].contains("missing")) << page << data[page].dump();
    EXPECT_EQ(data[page].size(), 1u);
  }
  verdict::DiagnosedRun logs;
  logs.evidence.emplace_back().source = "logs";
  const Json of_logs = data_of(logs);
  EXPECT_TRUE(of_logs["run"]["main"].is_null());
  EXPECT_TRUE(of_logs["lateness"].contains("missing"));
  EXPECT_EQ(of_logs["verdict"]["state"], "healthy");
}

TEST(ReportData, AJobThatHasNotBegunIsLive) {
  const Json data = waiting_data("no process file in run; waiting for the job to begin",
                                 {.paths = {"run"}, .made_ns = at_ms(0), .refresh_ns = 2'000'000'000});
  EXPECT_EQ(data["live"], true);
  EXPECT_EQ(data["refresh_ns"], 2'000'000'000);
  EXPECT_TRUE(data["diagnosis"].is_null());
  EXPECT_NE(data["steps"]["missing"].get<std::string>().find("waiting"), std::string::npos);
}

TEST(ReportData, IsLiveWhileAProcessRuns) {
  JobBuilder builder = late_job(2, 2, 1);
  builder.killed(0);
  builder.process(0).liveness = model::Liveness::kRunning;
  verdict::DiagnosedRun run = diagnosed(builder.build());
  DataRequest request{.paths = {"run"}, .made_ns = at_ms(900'000), .refresh_ns = 2'000'000'000};
  EXPECT_EQ(report_data(run, request)["live"], true);
  request.refresh_ns.reset();
  EXPECT_EQ(report_data(run, request)["live"], false) << "a file";
  run.evidence[0].job->processes[0].liveness = model::Liveness::kGone;
  request.refresh_ns = 1;
  EXPECT_EQ(report_data(run, request)["live"], false);
  EXPECT_TRUE(report_data(run, request)["refresh_ns"].is_null());
  run.evidence[0].job->processes[0].liveness = model::Liveness::kUnknown;
  EXPECT_EQ(report_data(run, request)["live"], false) << "another host, silent for a quarter of an hour";
  run.evidence[0].job->processes[0].row.heartbeat_ns = at_ms(899'000);
  EXPECT_EQ(report_data(run, request)["live"], true);
}

TEST(ReportData, HostileNamesStayText) {
  JobBuilder builder = late_job(2, 2, 1);
  const std::string name =
      "</script><!--<script>\xff\xfe\x01\n\xe2\x80\xa8 &amp;" + std::string(1 << 20, 'x');
  model::Job job = builder.build();
  job.comms[0].name = job.strings.intern(name);
  job.hosts[0].name = job.processes[0].row.host = job.processes[0].row.argv = job.strings.intern(name);
  const Json data = data_of(diagnosed(std::move(job)));
  EXPECT_LE(data["comms"][0]["name"].get<std::string>().size(), kTextMost);
  EXPECT_EQ(data["comms"][0]["name"].get<std::string>().find('\x01'), std::string::npos);
  const std::string text = script_text(data);
  for (const char* bad : {"<", ">", "&", "\xe2\x80\xa8", "\xff", "\n", "\x01"})
    EXPECT_EQ(text.find(bad), std::string::npos) << bad;
  const Json again = Json::parse(text);
  EXPECT_EQ(again["comms"][0]["name"], data["comms"][0]["name"]);
}

TEST(ReportData, TimesOfDamagedFilesDoNotOverflow) {
  JobBuilder builder = late_job(2, 2, 1);
  model::Job job = builder.build();
  constexpr int64_t kFar = int64_t{1} << 61;  // 73 years after the epoch
  job.processes[0].ops.called_ns[3] = -kFar;
  job.processes[0].ops.gpu_end_ns[5] = kFar;
  job.processes[1].row.first_ns = kFar;
  job.processes[1].row.last_ns = -kFar;
  const Json data = data_of(diagnosed(std::move(job)));
  EXPECT_EQ(data["lateness"]["rows"].size(), 2u);
}

TEST(Page, TakesTheDataInItsPlace) {
  const std::string page =
      R"(<html><script type="application/json" id="lockstep-data">null</script><p>null</p></html>)";
  auto filled = page_with(page, Json{{"name", "</script>"}});
  ASSERT_TRUE(filled);
  EXPECT_EQ(
      *filled,
      R"(<html><script type="application/json" id="lockstep-data">{"name":"\u003c/script\u003e"}</script><p>null</p></html>)");
  EXPECT_FALSE(page_with("<html></html>", Json()));
  EXPECT_FALSE(page_with(page + page, Json())) << "two places";
}

TEST(Shown, CutsBetweenCharacters) {
  std::string text(kTextMost - 4, 'a');
  for (int i = 0; i < 8; ++i) text += "\xc3\xa4";
  const std::string cut = shown(text);
  EXPECT_LE(cut.size(), kTextMost);
  EXPECT_EQ(cut.substr(cut.size() - 4), "a\xe2\x80\xa6");
  EXPECT_EQ(shown("plain"), "plain");
}

TEST(IsoTime, HasNanoseconds) {
  EXPECT_EQ(iso_time(1'760'000'000'123'456'789), "2025-10-09T08:53:20.123456789Z");
  EXPECT_EQ(iso_time(-1), "1969-12-31T23:59:59.999999999Z");
}

}  // namespace
}  // namespace lockstep::report
