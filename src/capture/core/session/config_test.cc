// SPDX-License-Identifier: Apache-2.0
#include "capture/core/session/config.h"

#include <gtest/gtest.h>
#include <string.h>

#include <string>

namespace lockstep::capture {
namespace {

class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"LOCKSTEP_DIR", "LOCKSTEP_MODE", "LOCKSTEP_RETAIN"}) unsetenv(name);
    identity_.pid = 77;
    identity_.rank = 5;
    identity_.node_rank = 2;
    strcpy(identity_.host, "node7");
    strcpy(identity_.job_id, "j42");
  }
  Config with(const char* name, const char* value) {
    setenv(name, value, 1);
    Config config = read_config(identity_);
    unsetenv(name);
    return config;
  }
  Identity identity_{};
};

TEST_F(ConfigTest, Defaults) {
  Config config = read_config(identity_);
  EXPECT_STREQ(config.directory, "lockstep-run");
  EXPECT_EQ(config.mode, format::Mode::kDefault);
  EXPECT_EQ(config.retention, format::Retention::kStream);
  EXPECT_EQ(config.cap_bytes, kDefaultCapBytes);
  EXPECT_STREQ(config.problem, "");
}

TEST_F(ConfigTest, EmptyIsUnset) {
  EXPECT_STREQ(with("LOCKSTEP_DIR", "").directory, "lockstep-run");
  EXPECT_STREQ(with("LOCKSTEP_MODE", "").problem, "");
  EXPECT_EQ(with("LOCKSTEP_RETAIN", "").cap_bytes, kDefaultCapBytes);
}

TEST_F(ConfigTest, ModesByTheNamesOfRocmTraceLite) {
  EXPECT_EQ(with("LOCKSTEP_MODE", "full").mode, format::Mode::kDeep);
  EXPECT_STREQ(with("LOCKSTEP_MODE", "full").problem, "");
  EXPECT_EQ(with("LOCKSTEP_MODE", "standard").mode, format::Mode::kDefault);
  EXPECT_STREQ(with("LOCKSTEP_MODE", "standard").problem, "");
}

TEST_F(ConfigTest, TokensOfTheDirectory) {
  EXPECT_STREQ(with("LOCKSTEP_DIR", "/r/%h/%j-%n.%r.%p").directory, "/r/node7/j42-2.5.77");
  EXPECT_STREQ(with("LOCKSTEP_DIR", "100%%/%x%").directory, "100%/%x%");
  identity_.job_id[0] = 0;
  EXPECT_STREQ(with("LOCKSTEP_DIR", "%j").directory, "nojob");
}

// A name from outside is one component.
TEST_F(ConfigTest, NamesLeadNowhere) {
  strcpy(identity_.job_id, "../../..");
  strcpy(identity_.host, "..");
  EXPECT_STREQ(with("LOCKSTEP_DIR", "/r/%j/%h").directory, "/r/.._.._../_");
}

// Cut short it would be another directory.
TEST_F(ConfigTest, TheDefaultStandsInForADirectoryThatIsTooLong) {
  EXPECT_EQ(strlen(with("LOCKSTEP_DIR", std::string(sizeof(Config::directory) - 1, 'd').c_str()).directory),
            sizeof(Config::directory) - 1);
  std::string tokens;
  for (int i = 0; i < 1000; ++i) tokens += "%h";
  for (const std::string& longer : {std::string(sizeof(Config::directory), 'd'), tokens}) {
    const Config config = with("LOCKSTEP_DIR", longer.c_str());
    EXPECT_STREQ(config.directory, "lockstep-run");
    EXPECT_NE(strstr(config.problem, "is longer than 1023 bytes; using lockstep-run"), nullptr)
        << config.problem;
  }
}

TEST_F(ConfigTest, Modes) {
  EXPECT_EQ(with("LOCKSTEP_MODE", "lite").mode, format::Mode::kLite);
  EXPECT_EQ(with("LOCKSTEP_MODE", "deep").mode, format::Mode::kDeep);
  EXPECT_EQ(with("LOCKSTEP_MODE", "off").mode, format::Mode::kOff);
  Config odd = with("LOCKSTEP_MODE", "Deep");
  EXPECT_EQ(odd.mode, format::Mode::kDefault);
  EXPECT_STREQ(odd.problem, "LOCKSTEP_MODE=Deep is not understood; using default");
}

TEST_F(ConfigTest, Retention) {
  EXPECT_EQ(with("LOCKSTEP_RETAIN", "stream:10M").cap_bytes, 10u << 20);
  Config ring = with("LOCKSTEP_RETAIN", "ring:2G");
  EXPECT_EQ(ring.retention, format::Retention::kRing);
  EXPECT_EQ(ring.cap_bytes, uint64_t{2} << 30);
  EXPECT_EQ(with("LOCKSTEP_RETAIN", "ring").cap_bytes, kDefaultRingBytes);
  for (const char* odd : {"rin", "ring:", "ring:x", "stream:-1", "stream:1T", ":5", "ring:1M:2"}) {
    Config config = with("LOCKSTEP_RETAIN", odd);
    EXPECT_EQ(config.retention, format::Retention::kStream) << odd;
    EXPECT_EQ(config.cap_bytes, kDefaultCapBytes) << odd;
    EXPECT_NE(strstr(config.problem, odd), nullptr) << odd;
  }
}

TEST_F(ConfigTest, AnEndlessValueFitsTheMessage) {
  Config config = with("LOCKSTEP_MODE", std::string(10000, 'x').c_str());
  EXPECT_LT(strlen(config.problem), sizeof config.problem);
  EXPECT_NE(strstr(config.problem, "using default"), nullptr);
}

TEST(ParseSize, TakesBytesAndBinaryUnits) {
  uint64_t bytes = 0;
  EXPECT_TRUE(parse_size("123", &bytes));
  EXPECT_EQ(bytes, 123u);
  EXPECT_TRUE(parse_size("64k", &bytes));
  EXPECT_EQ(bytes, 65536u);
  EXPECT_TRUE(parse_size("17179869183G", &bytes));
  EXPECT_EQ(bytes, uint64_t{17179869183} << 30);
  for (const char* wrong :
       {"", "0", "-1", "+1", " 1", "1 M", "1MB", "M", "0x10", "17179869184G", "18446744073709551616"}) {
    EXPECT_FALSE(parse_size(wrong, &bytes)) << wrong;
  }
}

}  // namespace
}  // namespace lockstep::capture
