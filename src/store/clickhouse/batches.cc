// SPDX-License-Identifier: Apache-2.0
// Cuts a run's rows into batches that come out the same at every push. So a push that was interrupted goes on
// where it stopped: what has its mark is made anew, but not sent. Batches are closed by rows and bytes alone,
// never by time or by what the server answers. A batch is of one partition, because an insert into several is
// not taken as a whole.
#include "store/clickhouse/batches.h"

#include <algorithm>

#include "base/text/units.h"
#include "base/unix_time.h"
#include "store/clickhouse/wire/sql_text.h"

namespace lockstep::store::clickhouse {
Result<void> Batches::read_marks() {
  LOCKSTEP_ASSIGN(const Rows rows,
                  client_.select("SELECT target, batch, digest, version FROM " + identifier(database_) +
                                     ".batches FINAL WHERE run = " + std::to_string(run_),
                                 4));
  // Milliseconds, but above all earlier ones: the clock of this host may have been set back since.
  version_ = static_cast<uint64_t>(unix_now_ns() / 1'000'000);
  // Texts of another program: what does not parse is not taken for a mark.
  for (const auto& row : rows) {
    const auto batch = parse_number(row[1]), digest = parse_number(row[2]), version = parse_number(row[3]);
    if (!batch || !digest || !version)
      return Error{ErrorCode::kUnsupported, "the store's table `batches` holds a row that is not a mark", {}};
    marks_[{row[0], *batch}] = *digest;
    version_ = std::max(version_, *version + 1);
  }
  return {};
}

void Batches::count_last() {
  // The caller writes a row after it was given out, so its size is known only at the next call.
  if (last_ != nullptr) open_bytes_ += last_->bytes() - last_bytes_;
  last_ = nullptr;
}

Result<BlockWriter*> Batches::row(TableId id, uint16_t day) {
  count_last();
  // Limits are for all open days together: memory is bounded, however many days a run spans.
  if (open_rows_ >= limits_.rows || open_bytes_ >= limits_.bytes) LOCKSTEP_TRY(send_fullest(id));
  BlockWriter& block = open_.try_emplace(day, table(id).columns).first->second;
  last_ = &block;
  last_bytes_ = block.bytes();
  ++open_rows_;
  ++rows_;
  return &block;
}

// Days that came by chance do not cost a batch each.
Result<void> Batches::send_fullest(TableId id) {
  // The first of equal ones, in the order of days: the choice is the same at every push.
  const auto fullest = std::max_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
    return a.second.bytes() < b.second.bytes();
  });
  LOCKSTEP_TRY(send(id, fullest->second));
  open_rows_ -= fullest->second.rows();
  open_bytes_ -= fullest->second.bytes();
  open_.erase(fullest);
  return {};
}

Result<void> Batches::finish(TableId id) {
  for (const auto& [day, block] : open_) LOCKSTEP_TRY(send(id, block));
  open_.clear();
  open_rows_ = open_bytes_ = 0;
  last_ = nullptr;
  return {};
}

Result<void> Batches::send(TableId id, const BlockWriter& block) {
  Made& made = made_[number(id)];
  // Counted before it is known whether it has to be sent: numbers must not depend on what the store has.
  const uint32_t batch = made.batches++;
  made.rows += block.rows();
  made.sums.resize(block.sums().size());
  for (size_t i = 0; i < made.sums.size(); ++i) made.sums[i] += block.sums()[i];
  ++batches_;
  const auto found = marks_.find({std::string(table(id).name), batch});
  if (found != marks_.end() && found->second == block.digest()) return {};
  if (mode_ == Mode::kCompare) {
    ++made.unmarked;
    return {};
  }
  const std::string body = block.encode(version_);
  // First the rows and then the mark: a mark without its rows would lose them for ever, rows without their
  // mark are only sent again.
  LOCKSTEP_ASSIGN(const uint64_t bytes, client_.insert(insert_sql(database_, table(id)), body));
  ++sent_batches_;
  sent_rows_ += block.rows();
  sent_bytes_ += bytes;
  return mark(id, batch, block);
}

Result<void> Batches::mark(TableId id, uint32_t batch, const BlockWriter& block) {
  const Table& marks = table(TableId::kBatches);
  BlockWriter row(marks.columns);
  row.number(day_)
      .number(run_)
      .text(table(id).name)
      .number(batch)
      .number(block.rows())
      .number(block.digest());
  row.number(static_cast<uint64_t>(unix_now_ns()));
  LOCKSTEP_TRY(client_.insert(insert_sql(database_, marks), row.encode(version_)));
  return {};
}

Result<std::string> Batches::compare(TableId id) {
  const Table& of = table(id);
  const Made& made = made_[number(id)];
  LOCKSTEP_ASSIGN(const Rows rows, client_.select(sums_sql(database_, of, run_), of.columns.size() + 1));
  const auto count = rows.size() == 1 ? parse_number(rows[0][0]) : std::nullopt;
  if (!count)
    return Error{ErrorCode::kUnsupported, "the store counts no rows of " + std::string(of.name), {}};
  // More rows than were made come from an earlier push of the run with other files; fewer are a loss in the
  // store.
  if (*count != made.rows)
    return std::string(of.name) + " holds " + plural(*count, "row") + " of this run, which has " +
           format_count(made.rows);
  for (size_t i = 0; i < made.sums.size(); ++i) {
    if (parse_number(rows[0][i + 1]) != made.sums[i])
      return std::string(of.name) + " holds other values of " + std::string(of.columns[i].name) +
             " than this run";
  }
  // Sums say nothing of texts of one length, nor of floating-point numbers: digests do.
  if (made.unmarked > 0)
    return "of " + plural(made.batches, "batch") + " of " + std::string(of.name) + ", the store confirmed " +
           format_count(made.unmarked) + " with another content, or never";
  return std::string();
}

}  // namespace lockstep::store::clickhouse
