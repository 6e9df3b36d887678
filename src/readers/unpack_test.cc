// SPDX-License-Identifier: Apache-2.0
#include "readers/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace lockstep::readers {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string name, text;
};

class UnpackTest : public ::testing::Test {
 protected:
  UnpackTest() {
    fs::create_directories(root_ / "tmp");
    ::setenv("TMPDIR", (root_ / "tmp").c_str(), 1);
  }
  ~UnpackTest() override { ::unsetenv("TMPDIR"); }

  // `filter`: of libarchive; raw without a name.
  std::string pack(const std::string& name, int filter, const std::vector<Entry>& entries, bool raw = false) {
    const std::string path = root_ / name;
    archive* a = archive_write_new();
    archive_write_add_filter(a, filter);
    if (raw) {
      archive_write_set_format_raw(a);
    } else {
      archive_write_set_format_gnutar(a);
    }
    EXPECT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
    for (const Entry& entry : entries) {
      archive_entry* e = archive_entry_new();
      archive_entry_set_pathname(e, entry.name.c_str());
      archive_entry_set_filetype(e, AE_IFREG);
      archive_entry_set_perm(e, 0644);
      archive_entry_set_size(e, static_cast<la_int64_t>(entry.text.size()));
      EXPECT_EQ(archive_write_header(a, e), ARCHIVE_OK);
      archive_write_data(a, entry.text.data(), entry.text.size());
      archive_entry_free(e);
    }
    archive_write_free(a);
    return path;
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  static bool all(const std::string&, std::span<const std::byte>) { return true; }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST_F(UnpackTest, EachCompressionGivesTheFileUnderItsName) {
  const std::string text(300'000, 'x');
  for (const auto& [filter, suffix] :
       std::vector<std::pair<int, std::string>>{{ARCHIVE_FILTER_GZIP, ".gz"},
                                                {ARCHIVE_FILTER_ZSTD, ".zst"},
                                                {ARCHIVE_FILTER_XZ, ".xz"},
                                                {ARCHIVE_FILTER_BZIP2, ".bz2"}}) {
    const std::string path = pack("rank_3" + suffix, filter, {{"", text}}, true);
    EXPECT_TRUE(Unpacker::is_packed(bytes_of(content(path))));
    Unpacker unpacker;
    auto unpacked = unpacker.unpack(path, all, true);
    ASSERT_TRUE(unpacked) << unpacked.error().message();
    ASSERT_EQ(unpacked->files.size(), 1u) << suffix;
    EXPECT_EQ(fs::path(unpacked->files[0]).filename(), "rank_3");
    EXPECT_TRUE(content(unpacked->files[0]) == text);
    EXPECT_EQ(unpacker.shown("at " + unpacked->files[0] + ":17"), "at " + path + ":17");
    EXPECT_TRUE(unpacked->troubles.empty());
  }
}

TEST_F(UnpackTest, AnArchiveGivesWhatIsWantedAndNothingElse) {
  const std::string inner = content(pack("inner.gz", ARCHIVE_FILTER_GZIP, {{"", "want: packed"}}, true));
  const std::string path =
      pack("all.tar.zst", ARCHIVE_FILTER_ZSTD,
           {{"dir/a", "want: a"}, {"b", "no"}, {"dir/c.gz", inner}, {"dir/a", "want: second of the name"}});
  Unpacker unpacker;
  auto unpacked = unpacker.unpack(
      path,
      [](const std::string&, std::span<const std::byte> first) {
        return first.size() > 4 && std::string_view(reinterpret_cast<const char*>(first.data()), 4) == "want";
      },
      true);
  ASSERT_TRUE(unpacked);
  std::vector<std::string> seen;
  for (const std::string& file : unpacked->files)
    seen.push_back(unpacker.shown(file) + " = " + content(file));
  EXPECT_EQ(seen, (std::vector<std::string>{path + "/dir/a = want: a", path + "/dir/c.gz = want: packed",
                                            path + "/again.1/dir/a = want: second of the name"}));
  EXPECT_EQ(unpacker.unpack(path, all, false)->files.size(), 0u) << "no archives wanted";
}

TEST_F(UnpackTest, NamesStayInside) {
  const std::string path =
      pack("evil.tar", ARCHIVE_FILTER_NONE,
           {{"../../escaped", "1"}, {"/etc/absolute", "2"}, {"a/../../b\n", "3"}, {"..", "4"}});
  Unpacker unpacker;
  auto unpacked = unpacker.unpack(path, all, true);
  ASSERT_TRUE(unpacked);
  ASSERT_EQ(unpacked->files.size(), 3u);
  for (const std::string& file : unpacked->files) {
    EXPECT_EQ(fs::weakly_canonical(file).string().rfind(fs::weakly_canonical(root_ / "tmp").string(), 0), 0u)
        << file;
    EXPECT_EQ(file.find('\n'), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(root_ / "escaped"));
}

TEST_F(UnpackTest, WhatExpandsWithoutBoundIsRefused) {
  const std::string path = pack("bomb.gz", ARCHIVE_FILTER_GZIP, {{"", std::string(8 << 20, 'x')}}, true);
  Unpacker unpacker({.harmless_bytes = 1 << 20, .most_growth = 200, .files_most = 8});
  auto unpacked = unpacker.unpack(path, all, true);
  ASSERT_TRUE(unpacked);
  EXPECT_TRUE(unpacked->files.empty());
  ASSERT_EQ(unpacked->troubles.size(), 1u);
  EXPECT_NE(unpacked->troubles[0].message().find("bomb.gz: expands to far more than"), std::string::npos);
  uint64_t left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "tmp"))
    left += entry.is_regular_file() && entry.path().filename() != ".boot";
  EXPECT_EQ(left, 0u);

  // All that is within one file has one budget, and what is beyond it ends that file.
  std::vector<Entry> nest;
  const std::string large =
      content(pack("large.gz", ARCHIVE_FILTER_GZIP, {{"", std::string(600'000, 'x')}}, true));
  for (int i = 0; i < 8; ++i) nest.push_back({std::to_string(i) + ".gz", large});
  const std::string nest_path = pack("nest.tar.gz", ARCHIVE_FILTER_GZIP, nest);
  Unpacker strict({.harmless_bytes = 1 << 20, .most_growth = 1, .files_most = 8});
  auto nested = strict.unpack(nest_path, all, true);
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->files.size(), 1u);
  EXPECT_EQ(nested->troubles.size(), 2u) << "the inner file, and the one that holds it";
  auto passed_over = unpacker.unpack(
      path, [](const std::string&, std::span<const std::byte>) { return false; }, true);
  ASSERT_TRUE(passed_over);
  EXPECT_EQ(passed_over->troubles.size(), 1u);

  // Files together have it as well; what grows no more than its size allows is not touched by others.
  Unpacker shared({.harmless_bytes = 1 << 20, .most_growth = 4, .files_most = 8});
  std::string text;
  for (uint32_t i = 0; i < 20'000; ++i) text += std::to_string(i * 2654435761u);
  const std::string modest = pack("modest.gz", ARCHIVE_FILTER_GZIP, {{"", text}}, true);
  const std::string large_path = root_ / "large.gz";
  EXPECT_EQ(shared.unpack(large_path, all, true)->files.size(), 1u);
  EXPECT_EQ(shared.unpack(large_path, all, true)->files.size(), 0u);
  EXPECT_EQ(shared.unpack(modest, all, true)->files.size(), 1u);

  std::vector<Entry> many;
  for (int i = 0; i < 20; ++i) many.push_back({std::to_string(i), "x"});
  auto crowd = unpacker.unpack(pack("crowd.tar", ARCHIVE_FILTER_NONE, many), all, true);
  ASSERT_TRUE(crowd);
  EXPECT_EQ(crowd->files.size(), 8u);
  ASSERT_EQ(crowd->troubles.size(), 1u);
  EXPECT_NE(crowd->troubles[0].text.find("more than 8 files"), std::string::npos);
}

TEST_F(UnpackTest, OfADamagedArchiveTheGoodPartIsKept) {
  std::string noise(1 << 20, '\0');
  uint32_t state = 1;
  for (char& c : noise) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  const std::string path = pack("cut.tar.gz", ARCHIVE_FILTER_GZIP, {{"whole", noise}, {"cut", noise}});
  fs::resize_file(path, fs::file_size(path) * 3 / 4);
  Unpacker unpacker;
  auto unpacked = unpacker.unpack(path, all, true);
  ASSERT_TRUE(unpacked);
  ASSERT_EQ(unpacked->files.size(), 2u);
  EXPECT_TRUE(content(unpacked->files[0]) == noise);
  const std::string rest = content(unpacked->files[1]);
  EXPECT_GT(rest.size(), noise.size() / 4);
  EXPECT_EQ(noise.compare(0, rest.size(), rest), 0);
  ASSERT_EQ(unpacked->troubles.size(), 1u);
  EXPECT_NE(unpacked->troubles[0].message().find("is damaged"), std::string::npos);
}

// Some 50 bytes of a gzip file give a line, and libarchive gives out 64 KiB at a time.
TEST_F(UnpackTest, OfADamagedGzipNothingBeforeTheDamageIsLost) {
  std::string lines;
  for (uint32_t i = 0, state = 1; i < 5000; ++i)
    lines += std::to_string(i) + ' ' + std::to_string(state = state * 1664525 + 1013904223) + '\n';
  const std::string whole = content(pack("whole.gz", ARCHIVE_FILTER_GZIP, {{"", lines}}, true));
  const auto unpacked = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    Unpacker unpacker;
    auto result = unpacker.unpack(root_ / name, all, true);
    EXPECT_TRUE(result) << name;
    EXPECT_EQ(result->troubles.size(), 1u) << name;
    return result->files.size() == 1 ? content(result->files[0]) : std::string();
  };
  const std::string cut = unpacked("cut.gz", whole.substr(0, whole.size() * 9 / 10));
  EXPECT_GT(cut.size(), lines.size() * 9 / 10 - 2000);
  EXPECT_EQ(lines.compare(0, cut.size(), cut), 0);

  std::string spoilt = whole;
  for (size_t i = 0; i < 64; ++i) spoilt[whole.size() / 2 + i] = '\xff';
  const std::string before = unpacked("spoilt.gz", spoilt);
  EXPECT_GT(before.size(), lines.size() / 2 - 2000);

  std::string wrong_sum = whole;
  wrong_sum[whole.size() - 8] ^= 1;
  EXPECT_TRUE(unpacked("sum.gz", wrong_sum) == lines);

  Unpacker unpacker;
  std::ofstream(root_ / "two.gz", std::ios::binary) << whole << whole << std::string(512, '\0');
  auto two = unpacker.unpack(root_ / "two.gz", all, true);
  ASSERT_TRUE(two);
  EXPECT_TRUE(two->troubles.empty());
  EXPECT_TRUE(content(two->files.at(0)) == lines + lines) << "one behind the other, and padding";
}

TEST_F(UnpackTest, AnOddEntryCostsNoOther) {
  const std::string path = pack("odd.tar", ARCHIVE_FILTER_NONE, {{"a", "1"}, {"a/b", "2"}, {"c", "3"}});
  Unpacker unpacker;
  auto unpacked = unpacker.unpack(path, all, true);
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(unpacked->files.size(), 2u);
  EXPECT_EQ(unpacked->troubles.size(), 1u);
}

TEST_F(UnpackTest, AbsentFilesAreAnError) { EXPECT_FALSE(Unpacker().unpack(root_ / "absent.gz", all, true)); }

}  // namespace
}  // namespace lockstep::readers
