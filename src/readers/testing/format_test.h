// SPDX-License-Identifier: Apache-2.0
// For tests of readers: files in a folder of the test's own, opened as one source, and what is lost of it.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/trace.h"
#include "model/trace_source.h"
#include "readers/reader.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers::testing {

class FormatTest : public ::testing::Test {
 protected:
  explicit FormatTest(const Format& format) : format_(format) {}

  // A file that `open` opens, with the others.
  std::string add(const std::string& name) { return paths_.emplace_back(folder_ / name); }
  void write_text(const std::string& name, const std::string& text) { std::ofstream(add(name)) << text; }
  // JSON or whatever else has dump(), one a line.
  template <class Lines>
  void write_lines(const std::string& name, const Lines& lines) {
    std::string text;
    for (const auto& line : lines) text += line.dump() + "\n";
    write_text(name, text);
  }

  std::unique_ptr<model::TraceSource> open() const {
    auto source = format_.open(paths_);
    EXPECT_TRUE(source) << source.error().message();
    return source ? std::move(*source) : nullptr;
  }
  static model::Trace load(model::TraceSource& source, size_t i) {
    model::Trace trace;
    EXPECT_TRUE(source.load(i, trace));
    return trace;
  }
  static model::Trace run(model::TraceSource& source) {
    model::Trace trace;
    source.run_losses(trace);
    return trace;
  }
  static uint64_t lost(const model::Trace& trace, std::string_view kind) {
    uint64_t count = 0;
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      if (trace.strings[trace.losses.kind[i]] == kind) count += trace.losses.count[i];
    }
    return count;
  }
  // Of the run and all of its processes.
  static uint64_t lost(model::TraceSource& source, std::string_view kind) {
    uint64_t count = lost(run(source), kind);
    for (size_t i = 0; i < source.processes(); ++i) count += lost(load(source, i), kind);
    return count;
  }

  const test::TemporaryFolder folder_;
  std::vector<std::string> paths_;

 private:
  const Format& format_;
};

}  // namespace lockstep::readers::testing
