// SPDX-License-Identifier: Apache-2.0
// `lockstep exporter` beside jobs that run: scraped by hand and by Prometheus, as a file, and at its ends.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "tests/e2e/workplace.h"
#include "tests/support/places.h"

namespace lockstep::test {
namespace {

// A connection to the server; -1 if there is none.
int connected(int port) {
  int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return connection;
  close(connection);
  return -1;
}

// What a server answers to these bytes; empty if it does not.
std::string ask(int port, const std::string& request) {
  int connection = connected(port);
  std::string answer;
  if (connection >= 0) {
    size_t sent = 0;
    while (sent < request.size()) {
      ssize_t got = send(connection, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (got <= 0) break;
      sent += static_cast<size_t>(got);
    }
    char buffer[65536];
    for (ssize_t got; (got = recv(connection, buffer, sizeof buffer, 0)) > 0;)
      answer.append(buffer, static_cast<size_t>(got));
  }
  close(connection);
  return answer;
}
std::string get(int port, const std::string& target) {
  return ask(port, "GET " + target + " HTTP/1.0\r\nHost: localhost\r\n\r\n");
}
std::string body(const std::string& answer) {
  size_t head = answer.find("\r\n\r\n");
  return head == std::string::npos ? std::string() : answer.substr(head + 4);
}

// Lines of the text format: name and labels, in order of labels -> value.
std::map<std::string, double> samples(const std::string& text) {
  std::map<std::string, double> all;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t blank = line.rfind(' ');
    all[line.substr(0, blank)] = std::strtod(line.c_str() + blank, nullptr);
  }
  return all;
}

bool installed(const std::string& program) { return run({"sh", "-c", "command -v " + program}).code == 0; }
#define NEED_PROMETHEUS()                                 \
  if (!installed("prometheus") || !installed("promtool")) \
  GTEST_SKIP() << "prometheus is not installed: tools/setup --test"

class Exporter : public Workplace {
 protected:
  // The program in the background, its output in NAME.out and NAME.err.
  std::unique_ptr<Process> start(const std::string& name, const std::string& command) const {
    return std::make_unique<Process>(
        std::vector<std::string>{"sh", "-c", "exec " + command + " >" + name + ".out 2>" + name + ".err"},
        here());
  }
  // The number behind the last colon of what follows `before` in the file, once it is there.
  int port_in(const std::string& file, const std::string& before) const {
    int port = 0;
    EXPECT_TRUE(wait_until([&] {
      if (!exists(file)) return false;
      const std::string text = read_file(path(file));
      std::smatch match;
      if (!std::regex_search(text, match, std::regex(before + "127\\.0\\.0\\.1:(\\d+)[/\\s\"]")))
        return false;
      port = std::stoi(match[1]);
      return true;
    })) << file;
    return port;
  }
  static std::string exporter(const std::string& options) {
    return LOCKSTEP_BIN_DIR "/lockstep exporter --listen 127.0.0.1:0 " + options;
  }
  static std::string simulator(const std::string& options) {
    return LOCKSTEP_BIN_DIR "/lockstep-sim-job --live --ranks 4 " + options + " -o run";
  }
  // Ends it in order.
  static Finished end(Process& process, int signal = SIGTERM) {
    kill(process.pid(), signal);
    return process.wait();
  }
  std::map<std::string, double> scrape(int port) const { return samples(body(get(port, "/metrics"))); }
  bool await_sample(int port, const std::string& name, double value) const {
    return wait_until([&] {
      auto all = scrape(port);
      auto known = all.find(name);
      return known != all.end() && known->second == value;
    });
  }
  // Operations and bytes by communicator and function.
  using Sums = std::map<std::pair<std::string, std::string>, std::pair<double, double>>;
  Sums summary() const {
    Sums sums;
    auto document =
        nlohmann::json::parse(do_here(lockstep({"summary", "--json", "run"})).out, nullptr, false);
    EXPECT_TRUE(document.is_object());
    for (const auto& op : document["op_list"]) {
      auto& sum = sums[{op["comm"], op["func"]}];
      sum.first += op["ops"].get<double>();
      sum.second += op["bytes"].get<double>();
    }
    EXPECT_FALSE(sums.empty());
    return sums;
  }
};

// A query of Prometheus' HTTP API: its results, by these labels.
std::map<std::vector<std::string>, double> query(int port, const std::string& expression,
                                                 const std::vector<std::string>& labels) {
  std::string escaped;
  for (char c : expression) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
    escaped += hex;
  }
  auto document = nlohmann::json::parse(body(get(port, "/api/v1/query?query=" + escaped)), nullptr, false);
  std::map<std::vector<std::string>, double> all;
  if (!document.is_object() || document.value("status", "") != "success") return all;
  for (const auto& row : document["data"]["result"]) {
    std::vector<std::string> key;
    for (const std::string& label : labels) key.push_back(row["metric"].value(label, ""));
    all[key] = std::strtod(row["value"][1].get<std::string>().c_str(), nullptr);
  }
  return all;
}

TEST_F(Exporter, PrometheusScrapesALiveJobAndAgreesWithSummary) {
  NEED_PROMETHEUS();
  auto running = start("exporter", exporter("--diagnose 1s run"));
  const int metrics = port_in("exporter.out", "http://");
  write_file(path("prometheus.yml"),
             "global: {scrape_interval: 1s, scrape_timeout: 1s}\nrule_files: [" LOCKSTEP_SOURCE_DIR
             "/examples/prometheus/lockstep-alerts.yml]\nscrape_configs:\n  - job_name: lockstep\n"
             "    static_configs: [{targets: ['127.0.0.1:" +
                 std::to_string(metrics) + "']}]\n");
  auto prometheus = start(
      "prometheus",
      "prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:0");
  const int api = port_in("prometheus.err", "Listening on\" address=");
  auto job = start("job", simulator("--steps 30"));
  EXPECT_EQ(job->wait().code, 0) << read_file(path("job.err"));

  const Sums expected = summary();
  std::map<std::vector<std::string>, double> ops, bytes;
  EXPECT_TRUE(wait_until([&] {
    ops = query(api, "sum by (comm, func) (lockstep_operations_total)", {"comm", "func"});
    bytes = query(api, "sum by (comm, func) (lockstep_operation_bytes_total)", {"comm", "func"});
    if (ops.size() != expected.size()) return false;
    return std::all_of(expected.begin(), expected.end(), [&](const auto& entry) {
      return ops[{entry.first.first, entry.first.second}] == entry.second.first;
    });
  }));
  for (const auto& [key, sums] : expected) {
    const std::vector<std::string> labels = {key.first, key.second};
    EXPECT_EQ(ops[labels], sums.first) << key.first << ' ' << key.second;
    EXPECT_EQ(bytes[labels], sums.second) << key.first << ' ' << key.second;
  }
  auto ranks = query(api, "sum by (rank) (lockstep_operations_total)", {"rank"});
  EXPECT_EQ(ranks.size(), 4u);
  EXPECT_EQ(query(api, "up{job=\"lockstep\"}", {"job"}).begin()->second, 1);
  EXPECT_TRUE(
      wait_until([&] { return !query(api, "lockstep_diagnosis_timestamp_seconds > 0", {}).empty(); }));
  EXPECT_EQ(query(api, "sum(lockstep_processes)", {})[{}], 4);
  // Every rule could be evaluated on what was scraped.
  const std::string rules = body(get(api, "/api/v1/rules"));
  EXPECT_TRUE(has(rules, "LockstepStraggler")) << rules;
  EXPECT_FALSE(has(rules, "\"health\":\"err\"")) << rules;
  end(*prometheus);
  EXPECT_EQ(end(*running).code, 0) << read_file(path("exporter.err"));
}

TEST_F(Exporter, RulesAndOutputPassPromtool) {
  NEED_PROMETHEUS();
  EXPECT_EQ(
      do_here({"promtool", "check", "rules", LOCKSTEP_SOURCE_DIR "/examples/prometheus/lockstep-alerts.yml"})
          .code,
      0);
  Finished tested =
      do_here({"promtool", "test", "rules", LOCKSTEP_SOURCE_DIR "/tests/prometheus/alerts_test.yml"});
  EXPECT_EQ(tested.code, 0) << tested;
  EXPECT_EQ(do_here({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", "4", "--steps", "4", "--mode", "deep",
                     "--fault", "never-joined", "-o", "run"})
                .code,
            0);
  Finished once = do_here(lockstep({"exporter", "--once", "run"}));
  ASSERT_EQ(once.code, 0) << once;
  for (const char* name : {"lockstep_bus_bandwidth_bytes_per_second_bucket", "lockstep_finding{",
                           "lockstep_operation_duration_seconds_sum", "lockstep_late_seconds_total"})
    EXPECT_TRUE(has(once.out, name)) << name;
  write_file(path("metrics.txt"), once.out);
  Surroundings around = here();
  around.input = path("metrics.txt");
  Finished checked = run({"promtool", "check", "metrics"}, around);
  EXPECT_EQ(checked.code, 0) << checked;
  EXPECT_EQ(checked.out + checked.err, "") << "no remarks either";
}

TEST_F(Exporter, GpuTimesAreThoseOfSummary) {
  EXPECT_EQ(do_here({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", "4", "--steps", "4", "--mode", "deep",
                     "-o", "run"})
                .code,
            0);
  auto all = samples(do_here(lockstep({"exporter", "--once", "--diagnose", "off", "run"})).out);
  auto document = nlohmann::json::parse(do_here(lockstep({"summary", "--json", "run"})).out, nullptr, false);
  std::map<std::string, std::pair<double, double>> expected;  // by labels: operations, seconds
  for (const auto& op : document["op_list"]) {
    auto& sums = expected["{comm=\"" + op["comm"].get<std::string>() + "\",func=\"" +
                          op["func"].get<std::string>() + "\",source=\"channels\"}"];
    sums.first += op["gpu"]["count"].get<double>();
    sums.second += op["gpu"]["count"].get<double>() * op["gpu"]["avg_ns"].get<double>() * 1e-9;
  }
  ASSERT_FALSE(expected.empty());
  for (const auto& [labels, sums] : expected) {
    EXPECT_EQ(all["lockstep_operation_duration_seconds_count" + labels], sums.first) << labels;
    // summary's are on the host's clock, whose rate against the GPU's is found out.
    EXPECT_NEAR(all["lockstep_operation_duration_seconds_sum" + labels], sums.second, sums.second * 0.02)
        << labels;
  }
}

TEST_F(Exporter, TellsWhoIsLateAcrossHostsWhoseClocksADiagnosisAligned) {
  // Of two hosts, whose clocks are 0.1 s apart; rank 13 is late by 11 ms from step 13 on.
  EXPECT_EQ(do_here({LOCKSTEP_BIN_DIR "/lockstep-sim-job", "--ranks", "16", "--mode", "deep", "--steps", "30",
                     "--fault", "host-late", "--seed", "4", "-o", "run"})
                .code,
            0);
  const auto late_of = [](const std::map<std::string, double>& all, const std::string& rank) {
    double sum = 0;
    for (const auto& [name, value] : all) {
      if (name.starts_with("lockstep_late_seconds_total{") && has(name, "rank=\"" + rank + "\""))
        sum += value;
    }
    return sum;
  };
  auto all = samples(do_here(lockstep({"exporter", "--once", "run"})).out);
  EXPECT_EQ(all.at("lockstep_exporter_unaligned_comms"), 0);
  for (int rank = 0; rank < 16; ++rank) {
    if (rank == 13) continue;
    EXPECT_LT(20 * late_of(all, std::to_string(rank)), late_of(all, "13")) << rank;
  }
  EXPECT_GT(late_of(all, "13"), 17 * 0.010);
  all = samples(do_here(lockstep({"exporter", "--once", "--diagnose", "off", "run"})).out);
  EXPECT_EQ(all.at("lockstep_exporter_unaligned_comms"), 2);
  EXPECT_EQ(late_of(all, "13"), 0);
}

TEST_F(Exporter, WaitsForTheRunAndSaysSo) {
  auto running = start("exporter", exporter("--diagnose off run"));
  const int port = port_in("exporter.out", "http://");
  EXPECT_TRUE(await_sample(port, "lockstep_run_present", 0));
  EXPECT_TRUE(wait_until([&] { return has(read_file(path("exporter.err")), "waiting: "); }));
  auto job = start("job", simulator("--steps 4"));
  EXPECT_EQ(job->wait().code, 0);
  EXPECT_TRUE(await_sample(port, "lockstep_processes{state=\"ended\"}", 4));
  EXPECT_EQ(scrape(port)["lockstep_run_present"], 1);
  // Counters outlive the run.
  const auto before = scrape(port);
  std::filesystem::rename(path("run"), path("elsewhere"));
  EXPECT_TRUE(await_sample(port, "lockstep_run_present", 0));
  const auto after = scrape(port);
  size_t counters = 0;
  for (const auto& [name, value] : before) {
    if (!has(name, "_total{") && !has(name, "_bucket{")) continue;
    ++counters;
    EXPECT_TRUE(after.contains(name) && after.at(name) >= value) << name;
  }
  EXPECT_GT(counters, 10u);
  EXPECT_EQ(end(*running, SIGINT).code, 0);
  std::string message = read_file(path("exporter.err"));
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 2) << message;
}

TEST_F(Exporter, TellsOfARankThatDies) {
  auto running = start("exporter", exporter("--diagnose 1s run"));
  const int port = port_in("exporter.out", "http://");
  auto job = start("job", simulator("--steps 1000 --fault rank-dead"));
  EXPECT_TRUE(await_sample(port, "lockstep_processes{state=\"gone\"}", 1));
  EXPECT_TRUE(wait_until([&] {
    auto all = scrape(port);
    size_t down = 0, dead = 0;
    for (const auto& [name, value] : all) {
      down += name.starts_with("lockstep_rank_up{") && value == 0;
      dead += name.starts_with("lockstep_finding{class=\"rank-dead\"");
    }
    return down == 1 && dead == 1;
  }));
  end(*job);
  EXPECT_EQ(end(*running).code, 0);
}

TEST_F(Exporter, AnswersScrapesAloneAndBoundsRequests) {
  std::filesystem::create_directories(path("run"));
  auto running = start("exporter", exporter("--diagnose off run"));
  const int port = port_in("exporter.out", "http://");
  EXPECT_TRUE(await_sample(port, "lockstep_run_present", 0));
  EXPECT_TRUE(has(get(port, "/metrics"), "200 OK"));
  for (const char* target : {"/", "/etc/passwd", "/../../etc/passwd", "/metrics/../exporter.err"}) {
    const std::string answer = get(port, target);
    EXPECT_FALSE(has(answer, "200 OK")) << target << answer;
  }
  EXPECT_FALSE(has(ask(port, "DELETE /metrics HTTP/1.0\r\n\r\n"), "200 OK"));
  EXPECT_FALSE(has(ask(port, "PUT /metrics HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello"), "200 OK"));
  EXPECT_FALSE(has(get(port, "/metrics?" + std::string(100'000, 'x')), "200 OK"));
  EXPECT_FALSE(has(ask(port, std::string(100'000, 'x')), "200 OK"));
  EXPECT_TRUE(has(ask(port, "GET /metrics HTTP/1.1\r\nHost: evil.example:9464\r\n\r\n"), " 421 "))
      << "rebinding";
  EXPECT_FALSE(has(ask(port, "GET /metrics HTTP/1.0\r\n\r\n"), "200 OK")) << "no Host";
  EXPECT_TRUE(has(get(port, "/metrics"), "200 OK")) << "it goes on";
  // A second one on the same port.
  Finished second = do_here(lockstep({"exporter", "--listen", "127.0.0.1:" + std::to_string(port), "run"}));
  EXPECT_EQ(second.code, 2) << second;
  EXPECT_TRUE(has(second.err, "cannot listen")) << second;
  EXPECT_EQ(std::count(second.err.begin(), second.err.end(), '\n'), 1) << second;
  EXPECT_EQ(end(*running).code, 0);
}

TEST_F(Exporter, ConnectionsThatSayNothingKeepNoScrapeOut) {
  std::filesystem::create_directories(path("run"));
  auto running = start("exporter", exporter("--diagnose off run"));
  const int port = port_in("exporter.out", "http://");
  EXPECT_TRUE(await_sample(port, "lockstep_run_present", 0));
  std::vector<int> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(connected(port));
  for (int i = 0; i < 6; ++i)
    EXPECT_TRUE(has(get(port, "/metrics"), "lockstep_exporter_look_age_seconds ")) << i;
  // They have been answered while the others were there: the last of those still is.
  char byte;
  EXPECT_EQ(recv(silent.back(), &byte, 1, MSG_DONTWAIT), -1);
  for (int one : silent) close(one);
  EXPECT_EQ(end(*running).code, 0);
}

TEST_F(Exporter, WritesWholeFilesForNodeExporter) {
  EXPECT_EQ(start("job", simulator("--steps 4"))->wait().code, 0);
  const Sums expected = summary();
  EXPECT_EQ(
      do_here(lockstep({"exporter", "--once", "--textfile", "once.prom", "--diagnose", "off", "run"})).code,
      0);
  double ops = 0, wanted = 0;
  for (const auto& [name, value] : samples(read_file(path("once.prom")))) {
    if (name.starts_with("lockstep_operations_total{")) ops += value;
  }
  for (const auto& [key, sums] : expected) wanted += sums.first;
  EXPECT_EQ(ops, wanted);
  auto running = start("exporter", LOCKSTEP_BIN_DIR
                       "/lockstep exporter --textfile run.prom --interval 100ms --diagnose off run");
  // Whoever reads finds a whole file, again and again a new one.
  std::set<double> looks;
  EXPECT_TRUE(wait_until([&] {
    if (!exists("run.prom")) return false;
    const std::string text = read_file(path("run.prom"));
    EXPECT_TRUE(text.ends_with("\n") && has(text, "lockstep_exporter_look_age_seconds"));
    looks.insert(samples(text)["lockstep_exporter_looks_total"]);
    return looks.size() >= 3;
  }));
  EXPECT_EQ(end(*running).code, 0);
  for (const std::string& name : names()) EXPECT_FALSE(has(name, ".partial-")) << name;
}

TEST_F(Exporter, WrongUsageAndInput) {
  write_file(path("text"), "text");
  std::filesystem::create_directories(path("empty"));
  for (const Argv& words : {Argv{"exporter"},
                            {"exporter", "text"},
                            {"exporter", "--once", "nowhere"},
                            {"exporter", "--once", "empty"},
                            {"exporter", "--listen", "localhost:1", "empty"},
                            {"exporter", "--listen", "192.0.2.1:0", "empty"},
                            {"exporter", "--textfile", "metrics.txt", "empty"},
                            {"exporter", "--textfile", "none/metrics.prom", "empty"},
                            {"exporter", "--textfile", "a.prom", "--listen", ":0", "empty"},
                            {"exporter", "--interval", "1s", "empty"},
                            {"exporter", "--textfile", "a.prom", "--interval", "1ms", "empty"},
                            {"exporter", "--diagnose", "often", "empty"},
                            {"exporter", "--ranks", "0", "empty"},
                            {"exporter", "--comms", "5000", "empty"}}) {
    Finished finished = do_here(lockstep(words));
    EXPECT_EQ(finished.code, 2) << finished;
    EXPECT_EQ(finished.out, "") << finished;
    EXPECT_GE(std::count(finished.err.begin(), finished.err.end(), '\n'), 1) << finished;
  }
}

}  // namespace
}  // namespace lockstep::test
