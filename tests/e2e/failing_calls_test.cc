// SPDX-License-Identifier: Apache-2.0
// Calls of `merge` and `trace` into the kernel fail, once or from then on: merge leaves the whole file, or
// none and says why; the launcher passes on what the command does, and what was captured is somewhere, or it
// says that nothing is. Some of the calls, evenly spread; with LOCKSTEP_ALL_CALLS=1 each of them.
#include "tests/support/failing_calls.h"

#include <functional>

#include "tests/e2e/workplace.h"

namespace lockstep::test {
namespace {

constexpr uint32_t kSamples = 12;
constexpr int kOps = 20, kJobExit = 7, kNotStarted = 126;

class FailingCallsOf : public Workplace {
 protected:
  using Check = std::function<void(const FailingCalls::Answer&)>;

  void SetUp() override {
    if (!FailingCalls::are_possible()) GTEST_SKIP() << "no process may answer for another one's calls here";
  }
  // Runs it with one call after the other failing. `check` sees each answer; what is left then goes, but for
  // `kept`.
  void each_fails(const Argv& argv, const std::set<std::string>& kept, const Check& check) const {
    const FailingCalls calls(folder_.path());
    const auto try_one = [&](FailingCalls::Plan plan) {
      const FailingCalls::Answer answer = calls.run(argv, plan);
      SCOPED_TRACE("call " + std::to_string(plan.first) + ", " + answer.failed +
                   (plan.is_for_good ? ", and all behind it" : ""));
      check(answer);
      for (const std::string& name : names())
        if (!kept.contains(name)) std::filesystem::remove_all(path(name));
      return answer.calls;
    };
    const uint32_t all = try_one({});
    ASSERT_GT(all, 2 * kSamples) << "calls are seen";
    const uint32_t step = std::getenv("LOCKSTEP_ALL_CALLS") != nullptr ? 1 : all / kSamples;
    for (const bool is_for_good : {false, true}) {
      for (uint32_t n = 1 + (is_for_good ? step / 2 : 0); n <= all && !HasFailure(); n += step)
        try_one({.first = n, .is_for_good = is_for_good});
    }
    RecordProperty("calls", static_cast<int>(all));
  }
  // Of all files below, one after the other.
  std::string bytes_below(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(folder)))
      if (entry.is_regular_file()) files[entry.path()] = read_file(entry.path());
    std::string bytes;
    for (const auto& [name, content] : files) bytes += name + content;
    return bytes;
  }
};

TEST_F(FailingCallsOf, Merge) {
  ASSERT_EQ(do_here(trace({"--no-merge", "--dir", "run"}, {"ops", std::to_string(kOps)})).code, 0);
  const std::string input = bytes_below("run");
  each_fails(lockstep({"merge", "-o", path("t.db"), path("run")}), {"run"},
             [&](const FailingCalls::Answer& answer) {
               const Finished& finished = answer.finished;
               EXPECT_LT(finished.code, 4) << finished;
               EXPECT_EQ(finished.code == 0, finished.err.empty()) << finished;
               EXPECT_EQ(bytes_below("run"), input) << finished;
               if (!exists("t.db")) {
                 EXPECT_NE(finished.code, 0) << finished;
                 return;
               }
               const auto merged = info("t.db");
               EXPECT_TRUE(merged["ops"] == kOps || !merged["losses"].empty()) << finished << merged;
               EXPECT_TRUE(merged["losses"].empty() || finished.code != 0 || has(finished.out, "lost: "))
                   << finished << merged;
             });
}

TEST_F(FailingCallsOf, Trace) {
  each_fails(trace({"-o", path("t.db")},
                   {"say", "hello", "ops", std::to_string(kOps), "exit", std::to_string(kJobExit)}),
             {}, [&](const FailingCalls::Answer& answer) {
               const Finished& finished = answer.finished;
               if (finished.code == kNotStarted) {  // without a process there is no command
                 EXPECT_TRUE(has(finished.err, "cannot be executed: Resource temporarily unavailable"))
                     << finished;
                 return;
               }
               EXPECT_EQ(finished.out, "hello\n") << finished;
               EXPECT_EQ(finished.code, kJobExit) << finished;
               if (exists("t.db")) {
                 const auto merged = info("t.db");
                 EXPECT_TRUE(merged["ops"] == kOps || !merged["losses"].empty()) << finished << merged;
               } else if (exists("t.run") && !has(finished.err, "NOT TRACED")) {
                 EXPECT_EQ(info("t.run")["ops"], kOps) << finished;
               } else {
                 EXPECT_TRUE(has(finished.err, "NOT TRACED")) << finished;
               }
             });
}

}  // namespace
}  // namespace lockstep::test
