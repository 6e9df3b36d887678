// SPDX-License-Identifier: Apache-2.0
#include "model/torch/comms_id.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "model/testing/std_comms_id.h"

namespace lockstep::model {
namespace {

TEST(CommsId, NameHashIsThatOfLibstdcxx) {
  struct {
    std::string_view name;
    uint64_t hash;
  } const vectors[] = {
      {"", 6142509188972423790u},
      {"0", 2297668033614959926u},
      {"1", 10159970873491820195u},
      {"12", 11194622142508650503u},
      {"default_pg", 17483303525057187894u},
      {"deadbeef", 14043738894911345346u},
      {"abcdefghi", 13036955925923793583u},
      {"0123456789abcdef0123456789abcdef01234567", 3986413328666125409u},
  };
  for (const auto& v : vectors) EXPECT_EQ(pg_name_hash(v.name), v.hash) << v.name;
}

TEST(CommsId, IsPyTorchsBitForBit) {
  struct {
    CommsTuple tuple;
    uint64_t id;
  } const vectors[] = {
      {{"0", 1, false, 0, 1, 2}, 2297668046887139027u},
      {{"0", 1, true, 0, 1, 2}, 2297668046887139088u},
      {{"0", 2, false, 0, 1, 2}, 2297668046887139088u},  // the scheme collides: the tuple must be compared
      {{"0", 0, false, 0, 1, 8}, 2297668046887139358u},
      {{"0", 1, false, 0, 1, 8}, 2297668046887139419u},
      {{"0", 12, false, 0, 1, 8}, 2297668046887140139u},
      {{"0", 12, false, -1, -1, 1}, 2297668041578268081u},
      {{"0", 1, false, -1, -1, 1}, 2297668041578267361u},
      {{"0", 4242424242, false, 0, 1, 64}, 2297668321549156830u},
      {{"1", 1, false, 0, 2, 4}, 10159970886763999488u},
      {{"1", 1, false, 1, 2, 4}, 10159970886763999547u},
      {{"1", 1, true, 1, 2, 4}, 10159970886763999622u},
      {{"3", 7, false, 0, -1, 3}, 5586280276518943005u},
      {{"3", 5, false, 8, 1, 8}, 8248777784072093481u},
      {{"3", 5, false, 0, 8, 4}, 8248777784072093141u},
      {{"5", 3, true, 0, 0, 1}, 7995238608688664575u},
      {{"12", 1000000, false, 0, 8, 16}, 11194622155844113634u},
      {{"", 1, false, 0, 1, 2}, 6142509202244602891u},
      {{"9e107d9d372bb6826bd81d3542a419d6e4f9c0a1", 42, false, 4, 1, 4}, 6403073004632262056u},
  };
  for (const auto& v : vectors) EXPECT_EQ(comms_id(v.tuple), v.id) << to_text(v.tuple);
}

TEST(CommsId, TextNamesEveryField) {
  EXPECT_EQ(to_text({"0", 12, false, 0, 1, 8}), "(0, 12, coll, 0, 1, 8)");
}

TEST(CommsId, GroupNameOnlyInTorchsForm) {
  EXPECT_EQ(torch_group_name("default_pg:0"), "0");
  EXPECT_EQ(torch_group_name("mesh:tp:17"), "17");
  EXPECT_EQ(torch_group_name("undefined:9e107d9d372bb6826bd81d3542a419d6e4f9c0a1"),
            "9e107d9d372bb6826bd81d3542a419d6e4f9c0a1");
  for (const char* other :
       {"", "0", "default_pg", "tp:", "tp:x", "tp:1x", "host:9e107d9d372bb6826bd81d3542a419d6e4f9c0a"}) {
    EXPECT_EQ(torch_group_name(other), "") << other;
  }
}

TEST(CommsId, ANameThatAProgramSaidIsOneInAnySpelling) {
  const auto check = [](std::string_view declared, std::string_view name, std::string_view description) {
    const ParsedGroup group = parse_group(declared);
    EXPECT_EQ(group.name, name) << declared;
    EXPECT_EQ(group.description, description) << declared;
  };
  check("tensor:3", "3", "tensor");
  check("aiter_custom_ar", "aiter_custom_ar", "");
  check("mesh:tp", "mesh:tp", "");
  check("", "", "");
}

TEST(CommsId, MembersAreToldAsPyTorchTellsThem) {
  struct {
    std::vector<int32_t> ranks;
    RankProgression expected;
  } const cases[] = {{{0, 1, 2}, {0, 1}},
                     {{1, 3, 5, 7}, {1, 2}},
                     {{4}, {4, 0}},
                     {{0, 1, 3}, {0, -1}},
                     {{3, 2, 1}, {3, -1}},
                     {{2, 2}, {2, -1}},
                     {{0, INT32_MAX}, {0, INT32_MAX}},
                     {{INT32_MIN, INT32_MAX}, {INT32_MIN, -1}}};
  for (const auto& c : cases) EXPECT_EQ(progression_of(c.ranks), c.expected) << c.ranks[0];
}

TEST(CommsId, ListsAreCutAsPyTorchCutsThem) {
  std::vector<int32_t> ranks;
  for (int32_t i = 0; i < 30; ++i) ranks.push_back(i);
  EXPECT_EQ(torch_list(std::vector<int32_t>{}, 0), "[]");
  EXPECT_EQ(torch_list(std::vector<int64_t>{4, -1}, 2), "[4, -1]");
  EXPECT_TRUE(torch_list(ranks, 30).ends_with("28, 29]"));
  ranks.push_back(30);
  const std::string cut = torch_list(ranks, 31);
  EXPECT_TRUE(cut.ends_with("27, 28, ..., 30]")) << cut;
  ranks.erase(ranks.begin() + 29);  // the first 29 and the last of 31
  EXPECT_EQ(torch_list(ranks, 31), cut);
}

// What PyTorch computes, with the real std::hash, of tuples of every kind: small and large, negative, of any
// name.
TEST(CommsId, AgreesWithStdHashOverRandomTuples) {
  std::mt19937_64 random(20261123);
  for (int i = 0; i < 10'000; ++i) {
    std::string name;
    if (i % 3 == 0) {
      name = std::to_string(random() % 1000);
    } else {
      for (size_t length = random() % 80; length > 0; --length) name += static_cast<char>(random() & 0xff);
    }
    const auto number = [&]() -> int32_t {
      const int32_t kinds[] = {-1, static_cast<int32_t>(random() % 16), static_cast<int32_t>(random())};
      return kinds[random() % 3];
    };
    const CommsTuple tuple{
        .pg_name = name,
        .seq = random() % 2 == 0 ? static_cast<int64_t>(random() % 100'000) : static_cast<int64_t>(random()),
        .is_p2p = random() % 2 == 0,
        .start = number(),
        .stride = number(),
        .world = number()};
    ASSERT_EQ(pg_name_hash(name), std::hash<std::string>()(name));
    ASSERT_EQ(comms_id(tuple),
              testing::std_comms_id(name, tuple.seq, tuple.is_p2p, tuple.start, tuple.stride, tuple.world))
        << to_text(tuple);
  }
}

}  // namespace
}  // namespace lockstep::model
