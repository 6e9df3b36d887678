// SPDX-License-Identifier: Apache-2.0
#include "cli/kit/output_place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

class OutputPlaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder + "/run/deeper");
    for (const char* file : {"run/a.lks", "run/deeper/b.lks", "run/manifest.json", "run/report.html",
                             "run/rank0.json.gz", "other.lks", "mine.json", "run/deeper/notes"})
      std::ofstream(folder + "/" + file) << "text";
  }

  // What is said about it; empty: it may be written.
  std::string error_of(const std::string& output, const std::string& input = "run") const {
    constexpr std::string_view kResults[] = {".html"};
    const auto checked =
        check_output(folder + "/" + output, {folder + "/absent", folder + "/" + input}, kResults);
    return checked ? "" : checked.error().text;
  }
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path();
};

TEST_F(OutputPlaceTest, EvidenceIsKept) {
  for (const char* file : {"run/a.lks", "run/deeper/b.lks", "run/../run/a.lks", "other.lks"})
    EXPECT_NE(error_of(file).find("is a process file"), std::string::npos) << file << error_of(file);
  for (const char* file : {"run/manifest.json", "run/rank0.json.gz", "run/deeper/../manifest.json"})
    EXPECT_NE(error_of(file).find("files of the run"), std::string::npos) << file << error_of(file);
  EXPECT_NE(error_of("mine.json", "mine.json").find("is an input"), std::string::npos);
  EXPECT_NE(error_of("run").find("is an input"), std::string::npos);
  fs::create_symlink("run", folder + "/link");
  EXPECT_NE(error_of("link/manifest.json"), "");
  EXPECT_NE(error_of("run/manifest.json", "link"), "");
}

TEST_F(OutputPlaceTest, ResultsAreReplaced) {
  for (const char* file : {"run/report.html", "mine.json", "new.json", "run/new.json", "run/new.lks",
                           "run/deeper", "run/deeper/notes"})
    EXPECT_EQ(error_of(file), "") << file;
  EXPECT_EQ(error_of("run/manifest.json", "mine.json"), "");
}

}  // namespace
}  // namespace lockstep::cli
