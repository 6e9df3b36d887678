// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "exporters/exporter.h"

namespace lockstep::exporters {
namespace {

TEST(ExporterRegistry, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Exporter* exporter : all()) {
    EXPECT_TRUE(names.insert(exporter->name).second) << exporter->name;
    EXPECT_EQ(find(exporter->name), exporter);
    EXPECT_FALSE(exporter->summary.empty());
    EXPECT_EQ(exporter->write == nullptr, !exporter->off.empty()) << exporter->name;
    EXPECT_TRUE(exporter->extension.starts_with(".")) << exporter->name;
  }
  EXPECT_FALSE(names.empty());
  EXPECT_EQ(find("no such exporter"), nullptr);
}

}  // namespace
}  // namespace lockstep::exporters
