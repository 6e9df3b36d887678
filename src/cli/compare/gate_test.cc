// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lockstep::cli::compare {
namespace {

using analysis::compare::Comparison;
using analysis::compare::Level;
using analysis::compare::Metric;
using analysis::compare::Ratio;
using analysis::compare::Row;
using State = GateResult::State;

Comparison of(Metric metric, double ratio, double low, double high) {
  Row row;
  row.metric = metric;
  row.steps_a = row.steps_b = 100;
  row.ratio = Ratio{ratio, low, high, 0.5};
  Comparison comparison;
  comparison.rows.push_back(row);
  return comparison;
}

GateResult judged(const std::string& gate, const Comparison& comparison) {
  auto gates = parse_gates(gate);
  EXPECT_TRUE(gates) << gates.error().message();
  return judge(gates->front(), comparison);
}

TEST(Gates, AreParsed) {
  const auto gates =
      parse_gates(" busbw:allreduce>=0.97, step <= 1.03 ,duration:all_gather:64M<=1,lateness<=2");
  ASSERT_TRUE(gates) << gates.error().message();
  ASSERT_EQ(gates->size(), 4U);
  EXPECT_EQ((*gates)[0].metric, Metric::kBusbw);
  EXPECT_EQ((*gates)[0].level, Level::kFunc);
  EXPECT_EQ((*gates)[0].func, "allreduce");
  EXPECT_TRUE((*gates)[0].at_least);
  EXPECT_DOUBLE_EQ((*gates)[0].bound, 0.97);
  EXPECT_EQ((*gates)[1].metric, Metric::kStep);
  EXPECT_FALSE((*gates)[1].at_least);
  EXPECT_EQ((*gates)[1].text, "step<=1.03");
  EXPECT_EQ((*gates)[2].level, Level::kSize);
  EXPECT_EQ((*gates)[2].size, 64U << 20);
  EXPECT_EQ((*gates)[3].level, Level::kJob);
}

TEST(Gates, ErrorsPointAtThePlace) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "--gate ends too early: expected step"},
      {"   ", "--gate ends too early: expected step"},
      {"speed>=1", "at character 1, before 'speed"},
      {"step<=1.03,", "--gate ends too early: expected step"},
      {"step<=1.03;busbw>=1", "at character 11, before ';busbw>=1': expected ',' or the end"},
      {"busbw:>=1", "at character 7, before '>=1': expected a function, like allreduce"},
      {"busbw:allreduce", "--gate ends too early: expected '>=' or '<='"},
      {"busbw:allreduce=0.97", "at character 16, before '=0.97': expected '>=' or '<='"},
      {"busbw:allreduce:64Q>=1", "at character 17, before '64Q>=1': expected a size, like 64M"},
      {"busbw:allreduce:64M:dp>=1", "at character 20, before ':dp>=1': expected '>=' or '<='"},
      {"step:a<=1", "at character 5"},
      {"step<=0", "at character 7, before '0': expected a ratio above 0, like 0.97"},
      {"step<=-1", "at character 7"},
      {"step<=nan", "at character 7"},
      {"step<=inf", "at character 7"},
      {"step<=1001", "at character 7"},
      {"step<=1e3", "at character 8, before 'e3': expected ',' or the end"},
      {"step<=3 %", "at character 9, before '%': expected ',' or the end"},
      {"step<=\x01\x1b[31m\xff", "before '??[31m?'"},
  };
  for (const auto& [text, message] : wrong) {
    const auto gates = parse_gates(text);
    ASSERT_FALSE(gates) << text;
    EXPECT_EQ(gates.error().code, ErrorCode::kUsage);
    EXPECT_NE(gates.error().message().find(message), std::string::npos)
        << text << ": " << gates.error().message();
  }
}

TEST(Gates, AreBounded) {
  std::string many = "step<=1";
  for (int i = 1; i < 64; ++i) many += ",step<=1";
  EXPECT_TRUE(parse_gates(many));
  EXPECT_FALSE(parse_gates(many + ",step<=1"));
  EXPECT_FALSE(parse_gates(std::string(5000, ' ') + "step<=1"));
  EXPECT_FALSE(parse_gates("busbw:" + std::string(100'000, 'a') + ">=1"));
}

TEST(Gates, TakeAnyBytesWithoutHarm) {
  std::mt19937 random(1);
  const std::string alphabet = "stepbusw:alred,<>=0.97 M\t\n\"\0\xff",
                    words[] = {"step", "busbw:", "<=", ">=", "1.0", ","};
  size_t good = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 8; n > 0; --n)
      text += random() % 2 == 0 ? words[random() % std::size(words)]
                                : std::string(1, alphabet[random() % alphabet.size()]);
    const auto gates = parse_gates(text);
    good += gates.has_value();
    if (!gates) {
      for (char c : gates.error().message())
        EXPECT_TRUE(c >= ' ' && c <= '~') << "an error is one printable line";
    }
  }
  EXPECT_GT(good, 0U);
}

TEST(Gates, PassIfTheWholeIntervalIsGood) {
  EXPECT_EQ(judged("step<=1.03", of(Metric::kStep, 1.01, 1.00, 1.02)).state, State::kPass);
  EXPECT_EQ(judged("step<=1.03", of(Metric::kStep, 1.01, 1.00, 1.03)).state, State::kPass)
      << "the bound is allowed";
  EXPECT_EQ(judged("step<=1.03", of(Metric::kStep, 1.08, 1.04, 1.12)).state, State::kRegressed);
  EXPECT_EQ(judged("step<=1.03", of(Metric::kStep, 1.01, 0.97, 1.05)).state, State::kCannotTell);
  EXPECT_EQ(judged("step<=1.03", of(Metric::kStep, 1.08, 1.02, 1.14)).state, State::kCannotTell);
  EXPECT_EQ(judged("busbw>=0.97", of(Metric::kBusbw, 0.99, 0.98, 1.00)).state, State::kPass);
  EXPECT_EQ(judged("busbw>=0.97", of(Metric::kBusbw, 0.90, 0.88, 0.92)).state, State::kRegressed);
  EXPECT_EQ(judged("busbw>=0.97", of(Metric::kBusbw, 0.97, 0.95, 0.99)).state, State::kCannotTell);
}

TEST(Gates, SayHowLongARunWouldTell) {
  // The interval reaches 4 % above, the bound is 2 % above: four times the steps.
  const GateResult result = judged("step<=1.02", of(Metric::kStep, 1.0, 0.96, 1.04));
  EXPECT_NE(result.sentence.find("about 393 steps"), std::string::npos) << result.sentence;
  EXPECT_NE(judged("step<=1.02", of(Metric::kStep, 1.02, 1.0, 1.04)).sentence.find("too close to the bound"),
            std::string::npos);
  for (const bool a_is_shorter : {true, false}) {
    Comparison unequal = of(Metric::kStep, 1.0, 0.96, 1.04);
    (a_is_shorter ? unequal.rows[0].steps_b : unequal.rows[0].steps_a) = 1000;
    EXPECT_EQ(judged("step<=1.02", unequal).sentence, result.sentence)
        << "the shorter run is what it takes more of";
  }
}

// 100 times the steps is the most that is advised. Reach over distance is 10 there: ln 1.2 to the end, a
// tenth to the bound.
TEST(Gates, MoreThanAHundredRunsAreNoAdvice) {
  const double bound = 1.02;
  for (const double side : {1.0, -1.0}) {
    const char* gate = side > 0 ? "step<=1.02" : "busbw>=1.02";
    const Metric metric = side > 0 ? Metric::kStep : Metric::kBusbw;
    auto sentence = [&](double reach) {
      // The middle is on the good side of the bound, by a hundredth.
      const double ratio = bound * std::exp(-side * 0.01);
      const double far = ratio * std::exp(side * reach), near = ratio * std::exp(-side * 0.001);
      return judged(gate, of(metric, ratio, std::min(far, near), std::max(far, near))).sentence;
    };
    EXPECT_NE(sentence(0.0995).find("about 9,901 steps"), std::string::npos) << sentence(0.0995);
    EXPECT_NE(sentence(0.1005).find("too close to the bound"), std::string::npos) << sentence(0.1005);
  }
}

TEST(Gates, LookAtWhatLastsToTheEnd) {
  Comparison comparison = of(Metric::kStep, 1.02, 1.01, 1.03);
  auto& since = comparison.rows[0].since.emplace();
  since.step = 210;
  since.ratio = Ratio{1.2, 1.18, 1.22, 0};
  EXPECT_EQ(judged("step<=1.05", comparison).state, State::kRegressed);
  EXPECT_NE(judged("step<=1.05", comparison).sentence.find("since step 210"), std::string::npos);
  EXPECT_DOUBLE_EQ(judged("step<=1.05", comparison).ratio->low, 1.18) << "what the state rests on";
  since.until_step = 240;
  EXPECT_EQ(judged("step<=1.05", comparison).state, State::kPass) << "it went away again";
  EXPECT_DOUBLE_EQ(judged("step<=1.05", comparison).ratio->low, 1.01);
}

TEST(Gates, CannotTellWhatIsNotThere) {
  EXPECT_EQ(judged("busbw:allgather>=1", of(Metric::kStep, 1, 1, 1)).state, State::kCannotTell);
  Comparison comparison = of(Metric::kStep, 1, 1, 1);
  comparison.rows[0].ratio.reset();
  comparison.rows[0].reason = "too few";
  EXPECT_EQ(judged("step<=1.03", comparison).sentence, "too few");
  EXPECT_FALSE(judged("step<=1.03", comparison).ratio);
}

TEST(Gates, OfSeveralTheWorstCounts) {
  const auto results = [](std::initializer_list<State> states) {
    std::vector<GateResult> out;
    for (State state : states) out.push_back({.state = state});
    return out;
  };
  EXPECT_EQ(worst(results({State::kPass, State::kPass})), State::kPass);
  EXPECT_EQ(worst(results({State::kPass, State::kCannotTell})), State::kCannotTell);
  EXPECT_EQ(worst(results({State::kCannotTell, State::kRegressed, State::kPass})), State::kRegressed);
}

}  // namespace
}  // namespace lockstep::cli::compare
