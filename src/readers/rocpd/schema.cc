// SPDX-License-Identifier: Apache-2.0
#include "readers/rocpd/schema.h"

#include "base/foreign_sqlite.h"

// The names of a file may be as many as its rows. Where several processes share them, each would read the
// whole table again, so it is read once and kept.
namespace lockstep::readers::rocpd {

std::shared_ptr<const Texts> texts_of(common::SqliteFile& database, const std::string& table,
                                      const std::string& what, const Process& process, SharedTexts& shared) {
  const auto read = [&] {
    // NOT INDEXED, as in all queries here: an index of a foreign file may contradict its table.
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
