// SPDX-License-Identifier: Apache-2.0
#include "cli/convert/into_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/temporary_directory.h"

namespace lockstep::cli::convert {
namespace {

// One process of rank 0; `meanwhile` happens as it is loaded: behind the first reading of the profile.
class OneRank : public model::TraceSource {
 public:
  explicit OneRank(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  size_t processes() const override { return 1; }
  Result<void> load(size_t, model::Trace& trace) override {
    model::Process process;
    process.rank = 0;
    trace.processes.append(process);
    meanwhile_();
    return {};
  }
  void run_losses(model::Trace&) override {}
  std::string name() const override { return "one rank"; }

 private:
  std::function<void()> meanwhile_;
};

TEST(WriteInto, AProfileThatBecomesSmallerIsAnError) {
  namespace fs = std::filesystem;
  const auto folder = TemporaryDirectory::make();
  ASSERT_TRUE(folder) << folder.error().message();
  const std::string profile = folder->path() + "/rank0.json", output = folder->path() + "/with.json";
  std::string events;
  for (int i = 0; i < 2000; ++i)
    events += std::string(i > 0 ? "," : "") +
              "\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":7,\"tid\":7," +
              "\"ts\":" + std::to_string(i) + ",\"dur\":1}";
  const std::string whole = "{\"traceEvents\":[" + events + "\n],\"traceName\":\"t\"}\n";
  std::ofstream(profile) << whole;
  OneRank quiet([] {});
  const auto written = write_into(profile, quiet, output);
  ASSERT_TRUE(written) << written.error().message();
  EXPECT_GE(fs::file_size(output), whole.size());
  fs::remove(output);
  // Before and behind the place where events are put in.
  for (const uint64_t size : {whole.size() / 2, whole.size() - 4}) {
    std::ofstream(profile) << whole;
    OneRank cut([&] { fs::resize_file(profile, size); });
    const auto broken = write_into(profile, cut, output);
    ASSERT_FALSE(broken) << size;
    EXPECT_NE(broken.error().message().find("rank0.json: shrank"), std::string::npos)
        << broken.error().message();
    EXPECT_FALSE(fs::exists(output)) << "nothing half is left";
  }
}

}  // namespace
}  // namespace lockstep::cli::convert
