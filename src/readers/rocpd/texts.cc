// SPDX-License-Identifier: Apache-2.0
#include "readers/rocpd/texts.h"

namespace lockstep::readers::rocpd {

// Damage ends the reading and keeps what came before: a kernel without a name still has its times.
Texts read_texts(const common::SqliteFile& database, const std::string& sql) {
  Texts out;
  auto query = database.query(sql);
  if (!query) {
    out.damage = query.error().message();
    return out;
  }
  auto row = query->next();
  for (; row && *row && out.ids.size() < kMostTexts; row = query->next())
    out.ids[query->integer(0)] = out.pool.intern(query->text(1));
  if (!row) out.damage = row.error().message();
  return out;
}

std::shared_ptr<const Texts> SharedTexts::get(const std::string& table, const std::function<Texts()>& read) {
  // Held while the table is read: who asks meanwhile mostly wants the same, and would only read it again.
  const std::lock_guard guard(lock_);
  std::shared_ptr<const Texts>& texts = tables_[table];
  if (!texts) texts = std::make_shared<const Texts>(read());
  return texts;
}

// Texts enter the trace's pool when a row names them: a process uses a few of a file's millions.
Names::Names(std::shared_ptr<const Texts> texts, model::StringPool& strings)
    : texts_(std::move(texts)), strings_(strings), taken_(texts_ ? texts_->pool.size() : 0) {}

model::StringId Names::operator[](int64_t id) {
  if (!texts_) return 0;
  const auto at = texts_->ids.find(id);
  if (at == texts_->ids.end() || at->second == 0) return 0;
  model::StringId& taken = taken_[at->second];
  if (taken == 0) taken = strings_.intern(texts_->pool[at->second]);
  return taken;
}

std::string_view Names::text(int64_t id) const {
  if (!texts_) return {};
  const auto at = texts_->ids.find(id);
  return at == texts_->ids.end() ? std::string_view() : texts_->pool[at->second];
}

}  // namespace lockstep::readers::rocpd
