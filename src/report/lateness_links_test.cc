// SPDX-License-Identifier: Apache-2.0
// Counters of links and GPUs lie in the columns of the heat map, and say no more than was sampled.
#include <gtest/gtest.h>

#include "analysis/testing/job_builder.h"
#include "report/page.h"
#include "report/report_context.h"
#include "report/report_data.h"

namespace lockstep::report {
namespace {

using analysis::testing::at_ms;
using analysis::testing::JobBuilder;
using verdict::LinkSeries;
using verdict::SeriesKind;

// Two hosts of two ranks that call each 20 ms, for 800 ms; node1's clock is `apart_ns` ahead and not aligned.
class LinksBeside : public ::testing::Test {
 protected:
  explicit LinksBeside(int64_t apart_ns = 0) {
    JobBuilder builder(4, 2);
    builder.steps(builder.world(), 40, 1, 20, 0);
    for (uint32_t rank = 0; rank < 4; ++rank) builder.process(rank).row.first_ns = at_ms(0);
    verdict::Evidence& evidence = run_.evidence.emplace_back();
    evidence.source = "capture files";
    evidence.job = builder.build(apart_ns == 0);
    for (const uint32_t rank : {2u, 3u}) {
      model::JobProcess& process = evidence.job->processes[rank];
      for (auto* times : {&process.ops.called_ns, &process.ops.enqueued_ns, &process.ops.launched_ns})
        for (int64_t& ns : *times) ns += apart_ns;
      for (int64_t* ns : {&process.row.first_ns, &process.row.last_ns, &process.row.heartbeat_ns})
        *ns += apart_ns;
    }
    run_.diagnosis = analysis::diagnose(*evidence.job);
    evidence.matches = job::match::count_matches(*evidence.job);
    run_.link_samples.emplace_back().host = "node1";
  }

  LinkSeries& add(SeriesKind kind, const std::string& device = "mlx5_0/1") {
    LinkSeries& series = run_.link_series.list.emplace_back();
    series.kind = kind;
    series.host = "node1";
    series.device = device;
    series.counter = "counter";
    series.unit = "count";
    series.sampled = {{at_ms(0), at_ms(1000)}};
    return series;
  }
  Json lateness() const {
    return report_data(run_, {.paths = {"run"}, .made_ns = at_ms(0), .refresh_ns = std::nullopt})["lateness"];
  }
  static size_t column_of(const Json& page, double ms) {
    const double past = ms * 1e6 - page["columns"]["begin_ns"].get<double>();
    return static_cast<size_t>(past / page["columns"]["width_ns"].get<double>());
  }

  verdict::DiagnosedRun run_;
};

TEST_F(LinksBeside, EachKindIsWhatItsColumnsSay) {
  LinkSeries& errors = add(SeriesKind::kFault);
  errors.parts = {
      {{at_ms(-5), at_ms(-5)}, 4}, {{at_ms(400), at_ms(400)}, 3}, {{at_ms(400.01), at_ms(400.01)}, 2}};
  errors.total = 9;
  errors.severity = analysis::Severity::kWarning;
  LinkSeries& slowed = add(SeriesKind::kSlowed);
  slowed.parts = {{{at_ms(200), at_ms(300)}, 100'000'000}};
  LinkSeries& clock = add(SeriesKind::kClock);
  clock.parts = {
      {{at_ms(0), at_ms(200)}, 1980}, {{at_ms(200), at_ms(300)}, 1100}, {{at_ms(300), at_ms(500)}, 1980}};
  clock.sampled = {{at_ms(0), at_ms(500)}};
  LinkSeries& traffic = add(SeriesKind::kTraffic);
  traffic.parts = {{{at_ms(100), at_ms(600)}, 1'000'000'000}};
  const Json page = lateness();
  const Json& rows = page["links"]["rows"];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(page["links"]["omitted"], 0);
  EXPECT_TRUE(page["links"]["hint"].is_null());

  uint64_t sum = 0;
  for (const Json& value : rows[0]["values"]) sum += value.get<uint64_t>();
  EXPECT_EQ(rows[0]["kind"], "fault");
  EXPECT_EQ(rows[0]["severity"], "warning");
  EXPECT_EQ(rows[0]["values"][column_of(page, 400)], 5);
  EXPECT_EQ(sum, 5u) << "those before the run are in the total alone";
  EXPECT_EQ(rows[0]["total"], 9);
  EXPECT_EQ(rows[0]["aligned"], true);

  EXPECT_EQ(rows[1]["kind"], "gauge");
  EXPECT_EQ(rows[1]["values"][column_of(page, 250)], 1.0);
  EXPECT_EQ(rows[1]["values"][column_of(page, 350)], 0.0);
  EXPECT_EQ(rows[2]["values"][column_of(page, 100)], 1980);
  EXPECT_EQ(rows[2]["values"][column_of(page, 200)], 1100) << "the lowest of a column";
  EXPECT_TRUE(rows[2]["values"][column_of(page, 550)].is_null()) << "it was not sampled any more";
  EXPECT_TRUE(rows[2]["total"].is_null());
  EXPECT_EQ(rows[3]["kind"], "traffic");
  EXPECT_NEAR(rows[3]["values"][column_of(page, 300)].get<double>(), 2e9, 1e3) << "bytes a second";
  EXPECT_EQ(rows[3]["values"][column_of(page, 700)], 0) << "sampled, and nothing moved";
}

TEST_F(LinksBeside, CountersOfAnotherTimeAreNotShown) {
  LinkSeries& errors = add(SeriesKind::kFault);
  errors.parts = {{{at_ms(-90'000), at_ms(-90'000)}, 4}};
  errors.sampled = {{at_ms(-100'000), at_ms(-80'000)}};
  EXPECT_TRUE(lateness()["links"]["rows"].empty());
}

TEST_F(LinksBeside, ManyClocksLeaveRoomForTraffic) {
  run_.link_series.omitted = 7;
  for (int i = 0; i < 3; ++i) add(SeriesKind::kFault).parts = {{{at_ms(400), at_ms(400)}, 3}};
  for (int i = 0; i < 24; ++i) add(SeriesKind::kClock).parts = {{{at_ms(0), at_ms(800)}, 3}};
  for (int i = 0; i < 24; ++i) add(SeriesKind::kTraffic).parts = {{{at_ms(0), at_ms(800)}, 3}};
  const Json links = lateness()["links"];
  ASSERT_EQ(links["rows"].size(), 24u);
  std::map<std::string, int> kinds;
  for (const Json& row : links["rows"]) ++kinds[row["kind"]];
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"fault", 3}, {"gauge", 13}, {"traffic", 8}}));
  EXPECT_EQ(links["omitted"], 7 + 51 - 24);
}

TEST_F(LinksBeside, WhereNothingWasSampledItSaysHowTo) {
  EXPECT_TRUE(lateness()["links"]["hint"].is_null()) << "sampled, and nothing to say";
  run_.link_samples.clear();
  EXPECT_NE(lateness()["links"]["hint"].get<std::string>().find("LOCKSTEP_LINKS=off"), std::string::npos);
  run_.evidence[0].job->files = "Flight Recorder dumps";
  EXPECT_TRUE(lateness()["links"]["hint"].is_null()) << "they never have counters";
}

TEST_F(LinksBeside, HostileNamesTimesAndValuesDoNoHarm) {
  for (const SeriesKind kind :
       {SeriesKind::kFault, SeriesKind::kSlowed, SeriesKind::kClock, SeriesKind::kTraffic}) {
    LinkSeries& series = add(kind, "</script>\x01\xff" + std::string(1 << 20, 'x'));
    series.host = "no host of this job";
    series.total = UINT64_MAX;
    series.parts = {{{INT64_MIN, INT64_MIN + 5}, UINT64_MAX},
                    {{at_ms(100), at_ms(300)}, UINT64_MAX},
                    {{at_ms(300), at_ms(200)}, UINT64_MAX},
                    {{at_ms(400), INT64_MAX}, UINT64_MAX}};
    series.sampled = {{INT64_MIN, at_ms(1)}, {at_ms(2), INT64_MAX}};
  }
  const Json page = lateness();
  ASSERT_EQ(page["links"]["rows"].size(), 4u);
  for (const Json& row : page["links"]["rows"]) {
    EXPECT_EQ(row["aligned"], false);
    EXPECT_LE(row["device"].get<std::string>().size(), kTextMost);
    EXPECT_EQ(row["values"].size(), page["columns"]["count"].get<size_t>());
    for (const Json& value : row["values"]) EXPECT_LE(value.is_null() ? 0.0 : value.get<double>(), 9e15);
  }
  EXPECT_EQ(script_text(page).find('<'), std::string::npos);
}

class LinksApart : public LinksBeside {
 protected:
  static constexpr int64_t kApartNs = 3'000'000'000;
  LinksApart() : LinksBeside(kApartNs) {}
};

TEST_F(LinksApart, AHostThatIsNotAlignedIsPlacedAsItsRanksAre) {
  LinkSeries& errors = add(SeriesKind::kFault);
  errors.parts = {{{at_ms(3400), at_ms(3400)}, 3}};
  errors.sampled = {{at_ms(3000), at_ms(4000)}};
  const Json page = lateness();
  ASSERT_EQ(page["links"]["rows"].size(), 1u);
  EXPECT_EQ(page["links"]["rows"][0]["aligned"], false);
  EXPECT_EQ(page["links"]["rows"][0]["values"][column_of(page, 400)], 3);
}

}  // namespace
}  // namespace lockstep::report
