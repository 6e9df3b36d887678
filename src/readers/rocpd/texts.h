// SPDX-License-Identifier: Apache-2.0
// The names of a file by their ids. A file may list as many as it has rows of work, for all of its processes:
// a table that several of them use is read once and kept as long as the source, and a process takes over only
// what its own rows name.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/string_pool.h"
#include "readers/common/sqlite_file.h"

namespace lockstep::readers::rocpd {

// One table of them. Not changed once it is read: any number of threads may look into it.
struct Texts {
  model::StringPool pool;
  std::unordered_map<int64_t, model::StringId> ids;  // into `pool`
  std::string damage;                                // why reading ended early; empty: it did not
};
// Of a query whose rows are an id and its text. At most kMostTexts of them.
Texts read_texts(const common::SqliteFile& database, const std::string& sql);
inline constexpr size_t kMostTexts = size_t{1} << 24;

// The tables of one file that several of its processes use, by name. Any number of threads may ask.
class SharedTexts {
 public:
  // `read` is called for the first who asks; others wait for it.
  std::shared_ptr<const Texts> get(const std::string& table, const std::function<Texts()>& read);

 private:
  std::mutex lock_;
  std::map<std::string, std::shared_ptr<const Texts>> tables_;
};

// The texts of one table as one trace has them.
class Names {
 public:
  Names(std::shared_ptr<const Texts> texts, model::StringPool& strings);
  // The first enters the text into the trace's pool, the second does not.
  model::StringId operator[](int64_t id);  // 0: none
  std::string_view text(int64_t id) const;

 private:
  std::shared_ptr<const Texts> texts_;
  model::StringPool& strings_;
  std::vector<model::StringId> taken_;  // by ids of Texts::pool; 0: not yet
};

}  // namespace lockstep::readers::rocpd
