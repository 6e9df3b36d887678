// SPDX-License-Identifier: Apache-2.0
#include "readers/rocpd/schema.h"

#include "base/foreign_sqlite.h"

namespace lockstep::readers::rocpd {

std::shared_ptr<const Texts> texts_of(common::SqliteFile& database, const std::string& table,
                                      const std::string& what, const Process& process, SharedTexts& shared) {
  const auto read = [&] {
    return read_texts(database, "SELECT id, " + what + " FROM " + sqlite_quoted(table) + " NOT INDEXED");
  };
  if (!process.shares_texts) return std::make_shared<const Texts>(read());
  return shared.get(table, [&] {
    // What all use is no part of one's share.
    database.allow(1);
    Texts texts = read();
    database.allow(process.share);
    return texts;
  });
}

}  // namespace lockstep::readers::rocpd
