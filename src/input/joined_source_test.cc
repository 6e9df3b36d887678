// SPDX-License-Identifier: Apache-2.0
#include "input/joined_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace lockstep::input {
namespace {

// One process, whose load ends when it is let go.
class OneCopy : public model::TraceSource {
 public:
  OneCopy(std::string name, std::atomic<int>& loading, const std::atomic<bool>& go)
      : name_(std::move(name)), loading_(loading), go_(go) {}
  size_t processes() const override { return 1; }
  std::string name() const override { return name_; }
  void run_losses(model::Trace&) override {}
  Result<void> load(size_t, model::Trace& trace) override {
    ++loading_;
    while (!go_) std::this_thread::yield();
    model::Process row{};
    row.pid = 7;
    row.start_ns = 100;
    trace.processes.append(row);
    return {};
  }

 private:
  const std::string name_;
  std::atomic<int>& loading_;
  const std::atomic<bool>& go_;
};

TEST(JoinedSource, TheEarlierSourceKeepsAProcessWhicheverIsReadFirst) {
  std::atomic<int> loading = 0;
  std::atomic<bool> first_goes = false, second_goes = false;
  std::vector<std::unique_ptr<model::TraceSource>> sources;
  sources.push_back(std::make_unique<OneCopy>("first", loading, first_goes));
  sources.push_back(std::make_unique<OneCopy>("second", loading, second_goes));
  JoinedSource joined(std::move(sources));
  bool is_kept[2] = {};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      model::Trace trace;
      is_kept[i] = joined.load(i, trace).has_value();
    });
  }
  while (loading < 2) std::this_thread::yield();
  second_goes = true;
  // Long enough for it to take the process, if it may.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  first_goes = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(is_kept[0]);
  EXPECT_FALSE(is_kept[1]);
}

}  // namespace
}  // namespace lockstep::input
