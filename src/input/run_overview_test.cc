// SPDX-License-Identifier: Apache-2.0
#include "input/run_overview.h"

#include <gtest/gtest.h>

#include "format/file_layout.h"
#include "input/losses.h"

namespace lockstep::input {
namespace {

// One process of that mode, with the text that says what was recorded when.
class OneProcess : public model::TraceSource {
 public:
  OneProcess(format::Mode mode, std::string modes) : mode_(mode), modes_(std::move(modes)) {}
  size_t processes() const override { return 1; }
  std::string name() const override { return "one"; }
  void run_losses(model::Trace&) override {}
  Result<void> load(size_t, model::Trace& trace) override {
    model::Process row{};
    row.mode = static_cast<uint8_t>(mode_);
    row.modes = trace.strings.intern(modes_);
    trace.processes.append(row);
    return {};
  }

 private:
  format::Mode mode_;
  std::string modes_;
};

std::string mode_of(format::Mode mode, std::string modes) {
  ObservedSource source(std::make_unique<OneProcess>(mode, std::move(modes)), {});
  model::Trace trace;
  EXPECT_TRUE(source.load(0, trace));
  return source.overview().processes.at(0).mode;
}

TEST(RunOverview, SaysOfASampleWhatShareItKept) {
  using format::Mode;
  EXPECT_EQ(mode_of(Mode::kDeep, "sample=1/4 5, deep 9"), "deep");
  EXPECT_EQ(mode_of(Mode::kSample, "default 1, sample=1/100 5, default 9"), "sample=1/100");
  EXPECT_EQ(mode_of(Mode::kSample, "sample=1/100 1, sample=3/8 5, sample=1/4 9"), "sample=3/8");
  EXPECT_EQ(mode_of(Mode::kSample, ""), "sample") << "a file that does not tell";
}

TEST(RunOverview, KnowsNoModeOfAnotherToolsFile) {
  EXPECT_EQ(mode_of(format::Mode::kOff, ""), "unknown");
  EXPECT_EQ(mode_of(format::Mode::kOff, "off 1"), "off");
}

TEST(Losses, AreSentences) {
  const auto words = [](uint64_t count, std::string detail) {
    return loss_words(
        {.stage = "read", .kind = "bad", .detail = std::move(detail), .count = count, .processes = {}});
  };
  EXPECT_EQ(words(1234, "events dropped"), "1,234 x events dropped");
  EXPECT_EQ(words(12, "of 15 chunks cannot be read: a.lks"), "12 of 15 chunks cannot be read: a.lks");
  EXPECT_EQ(words(1, "of its records or more cannot be read"), "1 of its records or more cannot be read");
}

// Of NCCL and declared, each of three names; a declared group has an operation.
class NamedComms : public model::TraceSource {
 public:
  size_t processes() const override { return 1; }
  std::string name() const override { return "one"; }
  void run_losses(model::Trace&) override {}
  Result<void> load(size_t, model::Trace& trace) override {
    trace.processes.append({});
    const auto add = [&](uint64_t id, const char* name, int32_t api_version) {
      return trace.comms.append(
          {.comm_id = id, .name = trace.strings.intern(name), .api_version = api_version});
    };
    add(1, "tp:1", 5);
    add(2, "tp:1", 0);
    add(3, "dp:2", 5);
    trace.ops.append({.comm = add(4, "dp:2", 0)});
    add(5, "pp:3", 0);
    return {};
  }
};

TEST(RunOverview, AGroupThatOnlyNamesACommunicatorIsNoSecondOne) {
  ObservedSource source(std::make_unique<NamedComms>(), {});
  model::Trace trace;
  ASSERT_TRUE(source.load(0, trace));
  std::vector<uint64_t> ids;
  for (const auto& members : source.overview().comms) ids.push_back(members.front().comm_id);
  EXPECT_EQ(ids, (std::vector<uint64_t>{1, 3, 4, 5}));
}

}  // namespace
}  // namespace lockstep::input
