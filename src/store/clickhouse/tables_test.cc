// SPDX-License-Identifier: Apache-2.0
#include "store/clickhouse/tables.h"

#include <gtest/gtest.h>

namespace lockstep::store::clickhouse {
namespace {

TEST(Tables, AreTheSameColumnsWhereverTheyAreNamed) {
  EXPECT_EQ(
      create_table_sql("f`x", table(TableId::kLosses), {18, 16}),
      "CREATE TABLE IF NOT EXISTS `f\\`x`.`losses` (`day` Date, `run` UInt64, `loss` UInt32, `process` UInt64, "
      "`stage` String, `kind` String, `lost` UInt64, `detail` String, `version` UInt64) "
      "ENGINE = ReplacingMergeTree(version) PARTITION BY toYYYYMM(day) ORDER BY (run, loss)");
  EXPECT_EQ(
      insert_sql("fleet", table(TableId::kLosses)),
      "INSERT INTO `fleet`.`losses` (`day`, `run`, `loss`, `process`, `stage`, `kind`, `lost`, `detail`, "
      "`version`) FORMAT Native");
  EXPECT_EQ(
      sums_sql("fleet", table(TableId::kLosses), 7),
      "SELECT count(), toUInt64(0), sum(toUInt64(`run`)), sum(toUInt64(`loss`)), sum(toUInt64(`process`)), "
      "sum(toUInt64(length(`stage`))), sum(toUInt64(length(`kind`))), sum(toUInt64(`lost`)), "
      "sum(toUInt64(length(`detail`))) FROM `fleet`.`losses` FINAL WHERE run = 7");
}

TEST(Tables, HaveCodecsWhereTheServerHas) {
  const std::string old = create_table_sql("fleet", table(TableId::kOps), {20, 2}),
                    modern = create_table_sql("fleet", table(TableId::kOps), {20, 3});
  EXPECT_EQ(old.find("CODEC"), std::string::npos);
  EXPECT_NE(modern.find("`entered_ns` Int64 CODEC(Delta(8), ZSTD(1)),"), std::string::npos) << modern;
  EXPECT_NE(modern.find("`gpu_ns` Int64 CODEC(T64, ZSTD(1)),"), std::string::npos);
  EXPECT_NE(modern.find("`launch_after_ns` Int64 CODEC(T64, ZSTD(1)),"), std::string::npos);
  EXPECT_NE(modern.find("`host` String CODEC(ZSTD(1)),"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::store::clickhouse
