// SPDX-License-Identifier: Apache-2.0
// Fixture of the end-to-end tests: a folder of its own, the built programs, and what `info --json` says.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

class Workplace : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }

  using Argv = std::vector<std::string>;
  static Argv lockstep(Argv words) {
    words.insert(words.begin(), LOCKSTEP_BIN_DIR "/lockstep");
    return words;
  }
  static Argv job(Argv words) {
    words.insert(words.begin(), LOCKSTEP_E2E_JOB);
    return words;
  }
  // lockstep trace OPTIONS -- the job's words
  static Argv trace(Argv options, const Argv& words) {
    options.insert(options.begin(), "trace");
    options.push_back("--");
    for (const std::string& word : job(words)) options.push_back(word);
    return lockstep(std::move(options));
  }
  Surroundings here(std::map<std::string, std::string> environment = {}) const {
    return {.folder = folder_.path(), .environment = std::move(environment), .input = "", .terminal = false};
  }
  Finished do_here(const Argv& argv, std::map<std::string, std::string> environment = {}) const {
    return run(argv, here(std::move(environment)));
  }
  nlohmann::json info(const std::string& input) const {
    Finished finished = do_here(lockstep({"info", "--json", input}));
    EXPECT_EQ(finished.code, 0) << finished;
    auto document = nlohmann::json::parse(finished.out, nullptr, false);
    EXPECT_TRUE(document.is_object()) << finished;
    return document;
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  static std::map<std::string, std::string> rank(int rank, int world) {
    return {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(world)}};
  }

  const TemporaryFolder folder_;
};

}  // namespace lockstep::test
