// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/wire/address.h"

#include <gtest/gtest.h>

namespace lockstep::store::clickhouse {
namespace {

TEST(Address, HasItsParts) {
  const auto plain = parse_address("http://store:8123");
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->base, "http://store:8123/");
  EXPECT_EQ(plain->database, "fleet");
  EXPECT_EQ(plain->user + plain->key, "");
  const auto full = parse_address("https://ann%40x:p%3A%2f@[::1]:8443/my%20db/");
  ASSERT_TRUE(full) << full.error().message();
  EXPECT_EQ(full->base, "https://[::1]:8443/");
  EXPECT_EQ(full->database, "my db");
  EXPECT_EQ(full->user, "ann@x");
  EXPECT_EQ(full->key, "p:/");
  EXPECT_EQ(parse_address("http://ann@store")->user, "ann");
  EXPECT_EQ(parse_address("http://ann:a@b@store")->key, "a@b");
}

TEST(Address, RefusesWhatIsNoneWithoutRepeatingIt) {
  for (const char* url :
       {"", "store:8123", "ftp://u:secret@store", "http://", "http://:8123/x", "http://u:secret@",
        "http://a b/", "http://u:secret%0d%0aX: y@store/", "http://u:secret%2@store/",
        "http://u:secret@store/a/b", "http://u:secret@store/a?x=1", "http://-x/", "http://u:secret@store/\n",
        "http://store/%zz"}) {
    const auto address = parse_address(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().code, ErrorCode::kUsage);
    EXPECT_EQ(address.error().message().find("secret"), std::string::npos) << address.error().message();
  }
}

TEST(Address, EncodesWhatAUrlWouldTakeForItsOwn) {
  EXPECT_EQ(percent_encoded("INSERT INTO `a`"), "INSERT%20INTO%20%60a%60");
  EXPECT_EQ(percent_encoded("a-b_c.d~\xff&="), "a-b_c.d~%FF%26%3D");
}

}  // namespace
}  // namespace lockstep::store::clickhouse
