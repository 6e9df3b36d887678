// SPDX-License-Identifier: Apache-2.0
#include "format/redact_words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::format {
namespace {

std::string redacted(const std::vector<std::string>& words) {
  std::string bytes;
  for (const std::string& word : words) bytes += word + '\0';
  bytes.resize(redact_words(bytes.data(), bytes.size()));
  for (char& c : bytes) c = c == 0 ? '|' : c;
  return bytes;
}

TEST(RedactWords, ValuesBehindNamesOfSecrets) {
  EXPECT_EQ(redacted({"train.py", "--hf-token", "hf_abc", "--lr", "0.1"}),
            "train.py|--hf-token|***|--lr|0.1|");
  EXPECT_EQ(redacted({"env", "WANDB_API_KEY=abcd", "a"}), "env|WANDB_API_KEY=***|a|");
  EXPECT_EQ(redacted({"--Password=x", "--client_SECRET", "yz"}), "--Password=*|--client_SECRET|**|");
  EXPECT_EQ(redacted({"--token="}), "--token=|");
}

TEST(RedactWords, EverythingElseStays) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"python", "train.py", "--lr=0.1", "-x", ""},
                                             {"token", "monkey", "key"},
                                             {},
                                             {"--use-key", "--next", "x"}}) {
    std::string same;
    for (const std::string& word : words) same += word + "|";
    EXPECT_EQ(redacted(words), same);
  }
}

TEST(RedactWords, ACutLastWord) {
  for (const std::string whole : {"--token\0secret", "--api-key=secret", "a\0--token"}) {
    for (size_t size = 0; size <= whole.size(); ++size) {
      std::string cut = whole.substr(0, size);
      EXPECT_LE(redact_words(cut.data(), cut.size()), size);
    }
  }
  std::string cut("--token\0sec", 11);
  cut.resize(redact_words(cut.data(), cut.size()));
  EXPECT_EQ(cut, std::string("--token\0***", 11));
}

}  // namespace
}  // namespace lockstep::format
