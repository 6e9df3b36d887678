// SPDX-License-Identifier: Apache-2.0
// What users name, sorted by what it is.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "readers/reader.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::readers {
namespace {

namespace fs = std::filesystem;

const std::string kData = LOCKSTEP_SOURCE_DIR "/tests/data/";
constexpr std::string_view kLogLine = "n1:5:5 [0] NCCL INFO Using network IB\n";

class SortTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
    return root_ / name;
  }
  std::string compress(const std::string& name, const std::string& text) {
    gzFile file = gzopen((root_ / name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return root_ / name;
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static std::vector<std::string> formats(const Inputs& inputs) {
    std::vector<std::string> list;
    for (const FormatFiles& files : inputs.formats)
      list.push_back(std::string(files.format->name) + ' ' + std::to_string(files.files.size()));
    return list;
  }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

std::string dump() {
  for (const auto& entry : fs::directory_iterator(kData + "flight_recorder/hang")) return entry.path();
  return {};
}

TEST_F(SortTest, ADirectoryGivesWhatFormatsKnow) {
  write("fr_rank_0", content(dump()));
  compress("fr_rank_1.gz", content(dump()));
  write("stderr.txt", "some words first\n" + std::string(kLogLine));
  write("deep.log", std::string(100'000, 'a') + '\n' + std::string(kLogLine));
  write("notes.txt", "nothing of interest\n");
  write("model.pt", std::string("\x80\x02", 2) + std::string(64, '\1'));
  write("node0/host.1.2.lks", "torn");
  auto inputs = sort({root_.string()});
  ASSERT_TRUE(inputs) << inputs.error().message();
  EXPECT_EQ(formats(*inputs), (std::vector<std::string>{"native 1", "flight_recorder 2", "nccl_log 2"}));
  EXPECT_TRUE(inputs->troubles.empty());
}

TEST_F(SortTest, ADirectoryThatMayNotBeListedIsCalledThat) {
  constexpr uid_t kNobody = 65534;
  write("host.1.2.lks", "torn");
  fs::permissions(root_, fs::perms::none);
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  auto inputs = sort({root_.string()});
  if (is_root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  fs::permissions(root_, fs::perms::owner_all);
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().text, "cannot be listed: Permission denied");
}

TEST_F(SortTest, DatabasesAreOpenedWhereTheirFirstBytesDoNotTell) {
  const auto database = [&](const std::string& name, const std::string& table) {
    sqlite3* handle = nullptr;
    sqlite3_open((root_ / name).c_str(), &handle);
    const std::string sql = "PRAGMA page_size=65536; CREATE TABLE " + table + "(id INTEGER PRIMARY KEY);";
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(handle);
    return content(root_ / name);
  };
  compress("packed.db.gz", database("known.db", "rocpd_op"));
  const std::string other = compress("other.db.gz", database("other.db", "somebody_elses"));
  auto inputs = sort({root_.string()});
  ASSERT_TRUE(inputs) << inputs.error().message();
  EXPECT_EQ(formats(*inputs), (std::vector<std::string>{"rocpd 2"}));
  EXPECT_TRUE(inputs->troubles.empty());
  auto named = sort({other});
  ASSERT_FALSE(named);
  EXPECT_NE(named.error().message().find(other + ": not a file of a known format"), std::string::npos)
      << named.error().message();
}

TEST_F(SortTest, OfTapesTheErrorSaysHowToReplayThem) {
  const std::string text = R"({"call":"tape","version":1,"pid":7,"hostid":"","realtime":1,"monotonic":1})"
                           "\n";
  const std::string folder = root_.string();
  const std::string packed = compress("rank0.jsonl.gz", text);
  const auto says = [](const Result<Inputs>& inputs) {
    return !inputs &&
           inputs.error().text.find("lockstep trace -o trace.db tools/replay FOLDER") != std::string::npos;
  };
  EXPECT_TRUE(says(sort({packed})));
  EXPECT_TRUE(says(sort({folder})));
  fs::remove(packed);
  EXPECT_TRUE(says(sort({write("rank0.jsonl", text)})));
  EXPECT_TRUE(says(sort({folder})));
  fs::remove(root_ / "rank0.jsonl");
  EXPECT_FALSE(says(sort({write("notes.json", "{\"call\":\"me\"}")})));
  EXPECT_FALSE(says(sort({folder})));
}

TEST_F(SortTest, ANamedLogMayBeginWithWhatPythonPrints) {
  const std::string words = "\nHW Exception by GPU node-9 reason :GPU Hang\n";
  auto inputs = sort({write("job.out", "{'loss': 2.5}" + words)});
  ASSERT_TRUE(inputs) << inputs.error().message();
  EXPECT_EQ(formats(*inputs), std::vector<std::string>{"nccl_log 1"});
  EXPECT_FALSE(sort({write("job.json", "{\"loss\": 2.5}" + words)}));
}

TEST_F(SortTest, EmptyFilesAreThoseOfTheFormatWhoseNameTheyHave) {
  write("vm-pid1470.log", content(kData + "inspector/vm-pid1470.log"));
  const std::string empty = write("another-pid7.log", "");
  write("vm-pid1471.log", "");
  write("notes.log", "");
  auto inputs = sort({root_.string()});
  ASSERT_TRUE(inputs) << inputs.error().message();
  EXPECT_EQ(formats(*inputs), (std::vector<std::string>{"inspector 3"}));
  auto source = open({root_.string()});
  ASSERT_TRUE(source) << source.error().message();
  model::Trace run;
  (*source)->run_losses(run);
  std::string details;
  for (size_t i = 0; i < run.losses.size(); ++i)
    details += std::string(run.strings[run.losses.detail[i]]) + '\n';
  EXPECT_NE(details.find("another-pid7.log: holds no whole record"), std::string::npos) << details;
  EXPECT_NE(details.find("vm-pid1471.log: holds no whole record"), std::string::npos) << details;
  EXPECT_EQ(details.find("notes.log"), std::string::npos) << details;
  auto alone = sort({empty});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().text, "is empty");
}

// A dump of which the first bytes are gone is of no format, but has the name of one.
TEST_F(SortTest, WhatIsCalledLikeItsNeighboursIsTroubleWhereItIsNone) {
  write("fr_rank_0", content(dump()));
  const std::string lost = write("fr_rank_1", std::string(5000, '\0'));
  write("notes_1", "nothing of interest\n");
  auto inputs = sort({root_.string()});
  ASSERT_TRUE(inputs) << inputs.error().message();
  EXPECT_EQ(formats(*inputs), (std::vector<std::string>{"flight_recorder 1"}));
  ASSERT_EQ(inputs->troubles.size(), 1u);
  EXPECT_EQ(inputs->troubles[0].where, lost);
}

// Whoever names text means it as a log; what lies in a directory may be anything.
TEST_F(SortTest, TextThatIsNamedIsALog) {
  const std::string notes = write("notes.txt", "nothing\nof interest\n");
  auto inputs = sort({notes});
  ASSERT_TRUE(inputs);
  EXPECT_EQ(formats(*inputs), (std::vector<std::string>{"nccl_log 1"}));
  EXPECT_FALSE(sort({root_.string()}));
}

TEST_F(SortTest, TextThatIsNamedIsALogHoweverItWasKept) {
  std::string wide = "\xFF\xFE";
  for (const char c : std::string("it stopped here\n")) wide.append(1, c).push_back('\0');
  wide.append("\x19\x20\n\0", 4);  // what is no control character in UTF-16
  for (const std::string& text :
       {wide, std::string("{&#x27;loss&#x27;: 2.5}<br/>\nit stopped here<br/>\n")}) {
    auto inputs = sort({write("kept.txt", text)});
    ASSERT_TRUE(inputs) << inputs.error().message();
    EXPECT_EQ(formats(*inputs), std::vector<std::string>{"nccl_log 1"});
  }
}

TEST_F(SortTest, WhatIsNamedAndNotKnownIsTrouble) {
  auto inputs = sort({write("a.log", kLogLine), write("notes.json", "{\"a\": 1}\n"), root_ / "absent",
                      compress("notes.gz", "nothing\n")});
  ASSERT_TRUE(inputs);
  EXPECT_EQ(formats(*inputs), (std::vector<std::string>{"nccl_log 1"}));
  ASSERT_EQ(inputs->troubles.size(), 3u);
  EXPECT_FALSE(sort({root_ / "notes.json"}));
  EXPECT_FALSE(sort({}));
}

TEST_F(SortTest, OneRunHasOneFormat) {
  const std::string log = write("a.log", kLogLine), fr = write("fr_rank_0", content(dump()));
  auto only_log = open({log});
  ASSERT_FALSE(only_log);
  EXPECT_NE(only_log.error().message().find("holds no operations"), std::string::npos);
  auto both = open({log, fr});
  ASSERT_FALSE(both);
  EXPECT_NE(both.error().message().find("`lockstep diagnose` takes any mix"), std::string::npos);
  EXPECT_TRUE(open({fr}));
  EXPECT_TRUE(open({root_.string()})) << "a log that lies beside dumps is left alone";
}

TEST_F(SortTest, UnpackedFilesKeepTheirNamesInRefusals) {
  const std::string dumps = compress("fr_rank_7.gz", content(dump())),
                    log = compress("log.gz", std::string(kLogLine));
  const auto both = open({write("plain.log", std::string(kLogLine)), dumps}), only = open({log});
  ASSERT_FALSE(both);
  ASSERT_FALSE(only);
  EXPECT_EQ(both.error().where.find("lockstep-files"), std::string::npos) << both.error().where;
  EXPECT_EQ(only.error().where, log);
}

TEST_F(SortTest, UnpackedFilesKeepTheirNamesInWhatIsSaid) {
  const std::string whole = content(dump());
  const std::string path = compress("fr_rank_7.gz", whole.substr(0, whole.size() / 2));
  auto source = open({path});
  ASSERT_TRUE(source) << source.error().message();
  model::Trace trace;
  ASSERT_TRUE((*source)->load(0, trace));
  EXPECT_EQ(trace.processes.rank[0], 7);
  std::string details;
  for (size_t i = 0; i < trace.losses.size(); ++i)
    details += std::string(trace.strings[trace.losses.detail[i]]) + '\n';
  EXPECT_NE(details.find(path), std::string::npos) << details;
  EXPECT_EQ(details.find("lockstep-files"), std::string::npos) << details;
}

TEST_F(SortTest, ATextOfSeveralKindsIsReadAsAll) {
  const std::string report = "Job summary\n===========\n";
  const std::string both = write("both", report + std::string(8000, '.') + "\n" + std::string(kLogLine)),
                    one = write("one", report);
  auto inputs = sort({both, one});
  ASSERT_TRUE(inputs);
  ASSERT_EQ(inputs->formats.size(), 2u);
  EXPECT_EQ(inputs->formats[0].format->name, "ras");
  EXPECT_EQ(inputs->formats[0].files, (std::vector<std::string>{both, one}));
  EXPECT_TRUE(inputs->formats[0].beside.empty());
  EXPECT_EQ(inputs->formats[1].format->name, "nccl_log");
  EXPECT_EQ(inputs->formats[1].files, std::vector<std::string>{both});
  EXPECT_TRUE(inputs->formats[1].beside.contains(both));
}

}  // namespace
}  // namespace lockstep::readers
