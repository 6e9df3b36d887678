// SPDX-License-Identifier: Apache-2.0
// What people paste of a job that failed, a few lines of one kind of trouble each, and the answers that they
// get: whatever a mail, a terminal, a page or a Windows shell made of the lines.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"
#include "verdict/diagnosed_run.h"
#include "verdict/outcome.h"

namespace lockstep::golden {
namespace {

namespace fs = std::filesystem;

const std::string kFolder = LOCKSTEP_SOURCE_DIR "/tests/data/pastes/";

struct Answer {
  std::string paste;
  int exit_code;
  std::string id;
  std::vector<int32_t> ranks = {};
};
const std::vector<Answer> kAnswers = {
    {"aborted_by_watchdog", 3, "evidence-missing.watchdog"},
    {"address_without_head", 1, "misconfigured.address"},
    {"analyser_culprits", 1, "joined-other-op.analyser", {22, 110}},
    {"analyser_missing", 1, "never-joined.analyser", {1}},
    {"announced", 3, "evidence-missing.announced"},
    {"card_without_answer", 1, "transport-error.retries"},
    {"described_hang", 3, "evidence-missing.symptom"},
    {"driver", 1, "misconfigured.driver-absent"},
    {"fabric_manager", 1, "aborted.fabric-manager", {2}},
    {"failed_work", 3, "evidence-missing.watchdog"},
    {"fatal_python", 1, "rank-dead.process"},
    {"gone_communicator", 1, "aborted.communicator-gone", {2}},
    {"gpu_memory", 1, "misconfigured.gpu-memory"},
    {"healthy_begin", 3, "evidence-missing.little"},
    {"horovod_missing", 1, "never-joined.horovod", {5}},
    {"horovod_ready", 1, "never-joined.horovod", {3}},
    {"jax_barrier", 1, "never-joined.rendezvous"},
    {"kernel_pcie", 1, "aborted.pcie"},
    {"kernel_port", 3, "evidence-missing.port-down"},
    {"killed_by_the_kernel", 1, "rank-dead.process"},
    {"launcher_signal", 1, "rank-dead.process"},
    {"lost_gpu", 1, "aborted.gpu-lost"},
    {"native_stack", 3, "evidence-missing.stacks"},
    {"never_created_communicator", 1, "aborted.communicator-gone"},
    {"no_gpus", 1, "misconfigured.driver-absent"},
    {"nvlink_sharp", 1, "fallback.nvls-cuda"},
    {"old_head", 1, "misconfigured.address"},
    {"one_gpu_twice", 1, "misconfigured.shared-gpu", {0, 1}},
    {"peer_closed", 1, "rank-dead.connection"},
    {"peer_unreached", 1, "transport-error.connect"},
    {"prose", 3, "evidence-missing.no-line"},
    {"python_stack", 3, "evidence-missing.stacks"},
    {"queue_pair", 1, "transport-error.verbs"},
    {"ray_worker", 1, "rank-dead.process"},
    {"sanitizer", 1, "aborted.sanitizer"},
    {"shared_memory", 1, "misconfigured.shared-memory"},
    {"shell_bus_error", 1, "rank-dead.process"},
    {"signal_of_mpi", 1, "rank-dead.process"},
    {"store", 1, "init-stuck.store"},
    {"store_barrier", 1, "init-stuck.store"},
    {"traces_of_sockets", 3, "evidence-missing.error-trace"},
    {"vllm_worker", 1, "rank-dead.worker"},
    {"watchdog_of_one", 3, "evidence-missing.watchdog"},
    {"watchdogs_differ", 1, "joined-other-op.watchdog", {0, 1}},
    {"xid", 1, "aborted.xid"},
    {"xla_rendezvous", 1, "never-joined.rendezvous-slow"},
};

std::string text_of(const std::string& paste) {
  std::ifstream file(kFolder + paste + ".txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Each line as somebody's program leaves it.
std::string each_line(const std::string& text, const std::function<std::string(const std::string&)>& change) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += change(text.substr(at, end - at)) + '\n';
    at = end + 1;
  }
  return out;
}
std::string on_a_page(const std::string& line) {
  std::string out;
  for (const char c : line)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out + "<br/>";
}
std::string utf16(const std::string& text) {
  std::string out = "\xFF\xFE";
  for (const char c : text) out.append(1, c).push_back('\0');
  return out;
}

struct Wrapping {
  const char* name;
  std::function<std::string(const std::string&)> of;
};
const std::vector<Wrapping> kWrappings = {
    {"as it is", [](const std::string& text) { return text; }},
    {"a mail",
     [](const std::string& text) { return each_line(text, [](auto& line) { return "> " + line; }); }},
    {"a terminal",
     [](const std::string& text) {
       return each_line(text, [](auto& line) { return "\033[31m" + line + "\033[0m"; });
     }},
    {"a page",
     [](const std::string& text) {
       return "<pre><code>\n" + each_line(text, on_a_page) + "</code></pre>\n";
     }},
    {"markdown", [](const std::string& text) { return "It says:\n```\n" + text + "```\n"; }},
    {"Windows",
     [](const std::string& text) { return utf16(each_line(text, [](auto& line) { return line + '\r'; })); }},
    {"indented",
     [](const std::string& text) { return each_line(text, [](auto& line) { return "    " + line; }); }},
};

TEST(Pastes, GetTheirAnswersWhateverTheyWentThrough) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "paste.txt";
  for (const Answer& answer : kAnswers) {
    for (const Wrapping& wrapping : kWrappings) {
      const std::string text = text_of(answer.paste);
      ASSERT_FALSE(text.empty()) << answer.paste;
      std::ofstream(path, std::ios::binary) << wrapping.of(text);
      const auto run = verdict::diagnose({path}, [](double) {});
      ASSERT_TRUE(run) << answer.paste << ", " << wrapping.name << ": " << run.error().message();
      const auto& findings = run->diagnosis.findings;
      ASSERT_FALSE(findings.empty()) << answer.paste << ", " << wrapping.name;
      EXPECT_EQ(id_text(findings[0].id), answer.id)
          << answer.paste << ", " << wrapping.name << ": " << findings[0].statement;
      EXPECT_EQ(findings[0].ranks, answer.ranks) << answer.paste << ", " << wrapping.name;
      EXPECT_EQ(verdict::exit_code(run->diagnosis), answer.exit_code)
          << answer.paste << ", " << wrapping.name;
    }
  }
}

// Two pastes in one file: neither is lost, and what is certain comes before what cannot tell.
TEST(Pastes, TroubleIsToldBesideAHealthyBegin) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "paste.txt";
  for (const Answer& answer : kAnswers) {
    if (answer.exit_code != 1) continue;
    std::ofstream(path) << text_of("healthy_begin") << text_of(answer.paste);
    const auto run = verdict::diagnose({path}, [](double) {});
    ASSERT_TRUE(run) << answer.paste;
    ASSERT_FALSE(run->diagnosis.findings.empty()) << answer.paste;
    EXPECT_EQ(id_text(run->diagnosis.findings[0].id), answer.id) << answer.paste;
  }
}

TEST(Pastes, EachHasItsAnswer) {
  std::set<std::string> answered;
  for (const Answer& answer : kAnswers) answered.insert(answer.paste);
  for (const auto& entry : fs::directory_iterator(kFolder))
    EXPECT_TRUE(answered.contains(entry.path().stem())) << entry.path();
}

}  // namespace
}  // namespace lockstep::golden
