// SPDX-License-Identifier: Apache-2.0
// How each release of NCCL finds the plugin: docs/plugin-life.md has this as a table. A host looks as that
// release does; what it finds captures.
#include "tests/abi/host.h"
#include "tests/support/places.h"
#include "tests/support/sanitizers.h"

namespace lockstep::test {
namespace {

const std::vector<std::string> kReleases = {"2.23", "2.26", "2.27.3", "2.27.5", "2.28.3"};
const std::string kLibraries = LOCKSTEP_LIB_DIR, kUnasked = kLibraries + "/lockstep/unasked";

class PluginSearch : public Host {
 protected:
  // The releases that find a plugin, which then has captured a process.
  std::vector<std::string> releases_that_find(const std::string& value, const Environment& environment,
                                              const char* program = LOCKSTEP_BIN_DIR
                                              "/lockstep-nccl-host") const {
    std::vector<std::string> found;
    for (const std::string& release : kReleases) {
      Environment all = environment;
      all["LOCKSTEP_DIR"] = path("run");
      std::filesystem::remove_all(path("run"));
      const Finished finished =
          run({program, "--plugin=" + value, "--search", release, "--script", "allreduce", "--events", "1"},
              {.folder = folder_.path(), .environment = std::move(all), .input = "", .terminal = false});
      const bool has_captured = std::filesystem::exists(path("run"));
      EXPECT_EQ(finished.code, has_captured ? 0 : 2) << release << ' ' << value << finished;
      if (has_captured) found.push_back(release);
    }
    return found;
  }
};

const std::vector<std::string> kAll = kReleases, kNone;
std::vector<std::string> from(size_t first) {
  return {kReleases.begin() + static_cast<std::ptrdiff_t>(first), kReleases.end()};
}

TEST_F(PluginSearch, ByPathInAllReleasesButOne) {
  EXPECT_EQ(releases_that_find(kLibraries + "/liblockstep-nccl.so", {}),
            (std::vector<std::string>{"2.23", "2.26", "2.27.5", "2.28.3"}));
}

TEST_F(PluginSearch, ByFileNameWhereTheLoaderFindsIt) {
  EXPECT_EQ(releases_that_find("liblockstep-nccl.so", {{"LD_LIBRARY_PATH", kLibraries}}), kAll);
  EXPECT_EQ(releases_that_find("liblockstep-nccl.so", {}), kNone);
}

TEST_F(PluginSearch, ByItsShortName) {
  EXPECT_EQ(releases_that_find("lockstep", {{"LD_LIBRARY_PATH", kLibraries}}), from(1));
  EXPECT_EQ(releases_that_find("lockstep", {}), kNone);
}

TEST_F(PluginSearch, WithoutTheVariableOnlyFromAFolderOfItsOwn) {
  EXPECT_EQ(releases_that_find("", {{"LD_LIBRARY_PATH", kUnasked}}), kAll);
  EXPECT_EQ(releases_that_find("", {{"LD_LIBRARY_PATH", kLibraries}}), kNone);
}

TEST_F(PluginSearch, NoneIsNothingSince2_28) {
  std::filesystem::create_symlink(kLibraries + "/liblockstep-nccl.so", path("libnccl-profiler-none.so"));
  EXPECT_EQ(releases_that_find("none", {{"LD_LIBRARY_PATH", folder_.path()}}),
            (std::vector<std::string>{"2.26", "2.27.3", "2.27.5"}));
}

const std::vector<std::string> kStatic = {"2.23", "2.26", "2.27.5", "2.28.3"};

TEST_F(PluginSearch, InAProgramThatWasLinkedWithIt) {
  for (const char* value : {"STATIC_PLUGIN", "static"})
    EXPECT_EQ(releases_that_find(value, {}, LOCKSTEP_BIN_DIR "/../tests/linked-nccl-host"), kStatic) << value;
  EXPECT_EQ(releases_that_find("STATIC_PLUGIN", {}), kNone);
}

TEST_F(PluginSearch, InAProgramIntoWhichItWasLoadedFirst) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's run time must be loaded first";
  EXPECT_EQ(releases_that_find("STATIC_PLUGIN", {{"LD_PRELOAD", kLibraries + "/liblockstep-nccl.so"}}),
            kStatic);
}

}  // namespace
}  // namespace lockstep::test
