// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests that drive a plugin with lockstep-nccl-host: a folder of its own, a run of the host,
// its JSON report, and what the echo plugin wrote down.
#pragma once
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {

using Json = nlohmann::json;
using Lines = std::vector<Json>;
using Environment = std::map<std::string, std::string>;

inline const char* const kEventKinds[] = {
    "Group",    "Coll",    "P2p",    "ProxyOp",      "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
    "GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl",    "CeSync",    "CeBatch",  "KernelPhase"};
// How many of the kinds above a version can be told about.
inline size_t kinds_of(int api) {
  constexpr size_t kCount[] = {0, 6, 6, 8, 8, 12, 15, 16};
  return kCount[api];
}

// The complete JSON lines of a text; a torn last line is left out.
inline Lines parse_lines(const std::string& text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (Json parsed = Json::parse(line, nullptr, false); parsed.is_object())
      lines.push_back(std::move(parsed));
  return lines;
}

inline std::string tape_path(const std::string& name) {
  return LOCKSTEP_SOURCE_DIR "/tests/data/tapes/" + name + ".jsonl.gz";
}
inline std::string tape_text(const std::string& name) {
  std::string text;
  gzFile file = gzopen(tape_path(name).c_str(), "rb");
  EXPECT_NE(file, nullptr);
  char block[65536];
  for (int got = 0; (got = gzread(file, block, sizeof block)) > 0;)
    text.append(block, static_cast<size_t>(got));
  gzclose(file);
  return text;
}

struct Played {
  int code = -1;
  std::string err;
  Json report;  // the host's
  Lines calls;  // what the echo plugin saw, without its header line

  Lines of(const std::string& call, uint64_t type = 0) const {
    Lines found;
    for (const Json& line : calls)
      if (line["call"] == call && (type == 0 || line.value("type", uint64_t{0}) == type))
        found.push_back(line);
    return found;
  }
  Lines states(int state) const {
    Lines found;
    for (const Json& line : of("state"))
      if (line["state"] == state) found.push_back(line);
    return found;
  }
};

class Host : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  // lockstep-nccl-host --plugin LIB WORDS
  Finished host(const std::string& plugin, std::vector<std::string> words,
                Environment environment = {}) const {
    words.insert(words.begin(), {LOCKSTEP_BIN_DIR "/lockstep-nccl-host", "--plugin", plugin});
    return run(
        words,
        {.folder = folder_.path(), .environment = std::move(environment), .input = "", .terminal = false});
  }
  Played echo(std::vector<std::string> words, Environment environment = {}) const {
    const std::string log = path("echo.jsonl");
    std::filesystem::remove(log);
    environment["ECHO_LOG"] = log;
    words.insert(words.end(), {"--report", "json"});
    const Finished finished = host(LOCKSTEP_LIB_DIR "/libecho-plugin.so", words, environment);
    Played played{finished.code, finished.err, Json::parse(finished.out, nullptr, false),
                  parse_lines(read_file(log))};
    std::erase_if(played.calls, [](const Json& line) { return line["call"] == "tape"; });
    EXPECT_TRUE(played.report.is_object()) << finished;
    return played;
  }
  static std::vector<std::string> script(const std::string& name, int api,
                                         std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--script", name, "--api", std::to_string(api)});
    return more;
  }
  static std::vector<std::string> tape(const std::string& name, int api, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--api", std::to_string(api)});
    more.push_back(tape_path(name));
    return more;
  }

  const TemporaryFolder folder_;
};

}  // namespace lockstep::test
