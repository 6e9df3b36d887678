// SPDX-License-Identifier: Apache-2.0
// The list of metrics, the page about them, the dashboard and the alert rules name the same things.
#include "exporters/prometheus/exposition.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "exporters/prometheus/served_metrics.h"
#include "tests/support/places.h"

namespace lockstep::exporters::metrics {
namespace {

using nlohmann::json;

std::string file_text(const std::string& path) {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/" + path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> known_names() {
  std::set<std::string> names;
  for (const MetricInfo& metric : all_metrics()) {
    names.emplace(metric.name);
    if (metric.type != prometheus::MetricType::Histogram) continue;
    for (const char* part : {"_bucket", "_sum", "_count"}) names.insert(std::string(metric.name) + part);
  }
  return names;
}

std::set<std::string> names_in(const std::string& text) {
  static const std::regex kName("lockstep_[a-z_]+");
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kName), end; at != end; ++at)
    names.insert(at->str());
  return names;
}

TEST(Metrics, LinksOfOneNameAreOneSeriesAndErrorsHaveRoomFirst) {
  const std::string longest(80, 'x');
  std::vector<LinkCounter> links = {{"n1", longest + "1", "sent", true, 5},
                                    {"n1", longest + "2", "sent", true, 7},
                                    {"n1", "mlx5_0/1", "link_downed", false, 2}};
  for (size_t i = 0; i < kMostLinkSeries; ++i) links.push_back({"n2", std::to_string(i), "sent", true, 1});
  size_t series = 0, twelve = 0;
  bool has_error = false;
  for (const prometheus::MetricFamily& family : families(RunMetrics({}), {}, {}, links)) {
    if (!family.name.starts_with("lockstep_link_")) continue;
    series += family.metric.size();
    has_error = has_error || family.name == "lockstep_link_events_total";
    for (const prometheus::ClientMetric& metric : family.metric) twelve += metric.counter.value == 12;
  }
  EXPECT_EQ(series, kMostLinkSeries);
  EXPECT_EQ(twelve, 1u);
  EXPECT_TRUE(has_error);
}

TEST(Metrics, FollowTheConventions) {
  std::set<std::string> seen;
  static const std::regex kName("lockstep_[a-z]+(_[a-z]+)*");
  for (const MetricInfo& metric : all_metrics()) {
    std::string name(metric.name);
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_TRUE(std::regex_match(name, kName)) << name;
    EXPECT_EQ(name.ends_with("_total"), metric.type == prometheus::MetricType::Counter) << name;
    if (metric.type == prometheus::MetricType::Histogram) {
      EXPECT_TRUE(name.ends_with("_seconds") || name.ends_with("_bytes_per_second")) << name;
    }
    for (const char* unit : {"_ms", "_us", "_ns", "_milliseconds", "_kilobytes", "_gb"})
      EXPECT_FALSE(name.ends_with(unit)) << name;
    EXPECT_FALSE(metric.help.empty() || metric.help.ends_with(".")) << name;
  }
}

TEST(Metrics, ThePageListsThemAll) {
  const std::string page = file_text("docs/prometheus.md");
  for (const MetricInfo& metric : all_metrics()) {
    const char* type = metric.type == prometheus::MetricType::Counter ? "counter"
                       : metric.type == prometheus::MetricType::Gauge ? "gauge"
                                                                      : "histogram";
    EXPECT_NE(page.find("| `" + std::string(metric.name) + "` | " + type + " |"), std::string::npos)
        << metric.name;
  }
  const auto known = known_names();
  for (const std::string& name : names_in(page)) EXPECT_TRUE(known.contains(name)) << name;
}

TEST(Metrics, TheDashboardNamesThoseThatAre) {
  const json dashboard =
      json::parse(file_text("examples/prometheus/lockstep-dashboard.json"), nullptr, false);
  ASSERT_TRUE(dashboard.is_object());
  EXPECT_EQ(dashboard.value("uid", ""), "lockstep");
  const json& variables = dashboard["templating"]["list"];
  EXPECT_TRUE(std::any_of(variables.begin(), variables.end(), [](const json& variable) {
    return variable["type"] == "datasource" && variable["query"] == "prometheus" &&
           variable["name"] == "datasource";
  }));
  const auto known = known_names();
  std::set<int> ids;
  std::set<std::string> shown;
  size_t panels = 0;
  for (const json& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << panel["title"];
    EXPECT_FALSE(panel["title"].get<std::string>().empty());
    if (panel["type"] == "row") continue;
    ++panels;
    EXPECT_EQ(panel["datasource"]["uid"], "${datasource}") << panel["title"];
    EXPECT_FALSE(panel["description"].get<std::string>().empty()) << panel["title"];
    ASSERT_FALSE(panel["targets"].empty()) << panel["title"];
    std::set<std::string> letters;
    for (const json& target : panel["targets"]) {
      EXPECT_TRUE(letters.insert(target["refId"].get<std::string>()).second) << panel["title"];
      const auto names = names_in(target["expr"].get<std::string>());
      EXPECT_FALSE(names.empty()) << panel["title"];
      for (const std::string& name : names) EXPECT_TRUE(known.contains(name)) << name << panel["title"];
      shown.insert(names.begin(), names.end());
    }
  }
  EXPECT_GE(panels, 10u);
  for (const char* name : {"lockstep_bus_bandwidth_bytes_per_second_sum", "lockstep_late_seconds_total",
                           "lockstep_in_flight_age_seconds", "lockstep_losses_total", "lockstep_finding"})
    EXPECT_TRUE(shown.contains(name)) << name;
}

TEST(Metrics, TheRulesNameThoseThatAre) {
  const auto known = known_names();
  const std::string rules = file_text("examples/prometheus/lockstep-alerts.yml");
  EXPECT_GE(names_in(rules).size(), 5u);
  for (const std::string& name : names_in(rules)) EXPECT_TRUE(known.contains(name)) << name;
}

TEST(Address, IsNumeric) {
  struct Case {
    const char *text, *host;
    int port;
    bool loopback;
  };
  for (const Case& good : {Case{"127.0.0.1:9464", "127.0.0.1", 9464, true}, Case{":0", "127.0.0.1", 0, true},
                           Case{"[::1]:80", "::1", 80, true}, Case{"0.0.0.0:1", "0.0.0.0", 1, false},
                           Case{"[::]:65535", "::", 65535, false}}) {
    auto address = parse_address(good.text);
    ASSERT_TRUE(address) << good.text;
    EXPECT_EQ(address->host, good.host);
    EXPECT_EQ(address->port, good.port);
    EXPECT_EQ(address->loopback, good.loopback) << good.text;
  }
  for (const char* bad :
       {"", ":", "9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80s",
        "localhost:80", "::1:80", "[]:80", "127.0.0.1:80,0.0.0.0:81", "+127.0.0.1:80", "[::1:80"})
    EXPECT_FALSE(parse_address(bad)) << bad;
}

}  // namespace
}  // namespace lockstep::exporters::metrics
