// SPDX-License-Identifier: Apache-2.0
// Turns the state of all ranks into lines that fit a terminal. Rows go first: good ranks fold into one line
// for each state, since a job may have a thousand of them and a reader looks for the others. Then columns go,
// whole ones, by priority, because a cut number is a wrong number.
#include "cli/top/view.h"

#include <algorithm>
#include <array>

#include "base/text/units.h"
#include "base/text/wording.h"
#include "base/text/wrap.h"
#include "cli/kit/table.h"

namespace lockstep::cli::top {
namespace {

std::string seconds_text(int64_t ns) { return ns < 0 ? "-" : format_duration(static_cast<double>(ns)); }

std::string op_text(const std::optional<live::SeenOp>& op) {
  if (!op) return "-";
  return (op->number ? wording::ordinal(*op->number + 1) + " " : "") + op->func +
         (op->comm.empty() ? "" : " " + op->comm);
}

// Cut to `width` columns; UTF-8 stays whole.
std::string cut(const std::string& text, size_t width) {
  if (columns(text) <= width) return text;
  size_t at = 0;
  for (size_t taken = 0; at < text.size(); ++at) {
    bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && taken++ == width) break;
  }
  return text.substr(0, at);
}

constexpr live::Health kQuiet[] = {live::Health::kWaits, live::Health::kGood, live::Health::kEnded,
                                   live::Health::kReplaced};
bool quiet(const live::RankRow& row) {
  return std::find(std::begin(kQuiet), std::end(kQuiet), row.health) != std::end(kQuiet);
}

Mood mood_of(const live::RankRow& row) {
  switch (row.health) {
    case live::Health::kGone:
    case live::Health::kStopped:
      return Mood::kBad;
    case live::Health::kSilent:
    case live::Health::kLate:
    case live::Health::kWaits:
      return Mood::kWarning;
    case live::Health::kEnded:
    case live::Health::kReplaced:
    case live::Health::kHelper:
      return Mood::kFaint;
    case live::Health::kGood:
      break;
  }
  return Mood::kPlain;
}

// Whether a row stands above another: the largest value first, and the rank as LiveRun sorts it. The sort is
// stable, so equal rows keep that order.
bool before(const live::RankRow& a, const live::RankRow& b, SortKey key) {
  switch (key) {
    case SortKey::kRank:
      return false;  // as they came
    case SortKey::kLateness:
      return std::pair(a.late_ns, a.behind) > std::pair(b.late_ns, b.behind);
    case SortKey::kBandwidth:
      return a.bytes_per_s > b.bytes_per_s;
    case SortKey::kOps:
      return a.ops_per_s > b.ops_per_s;
    case SortKey::kInFlight:
      return (a.oldest_open ? a.oldest_open->age_ns : -1) > (b.oldest_open ? b.oldest_open->age_ns : -1);
    case SortKey::kDropped:
      return a.dropped > b.dropped;
  }
  return false;
}

std::vector<std::string> cells(const live::RankRow& row) {
  // An open operation of unknown name shows nothing, as its age alone would not say of what.
  std::string in_flight = row.open == 0 || !row.oldest_open ? "-" : op_text(row.oldest_open);
  return {row.who,
          row.host,
          row.device >= 0   ? std::to_string(row.device)
          : row.pci.empty() ? "-"
                            : row.pci,
          row.health == live::Health::kWaits ? "waiting for " + row.waits_for
                                             : std::string(live::health_text(row.health)),
          row.behind == 0 ? "-" : format_count(row.behind),
          row.behind == 0 ? "-" : seconds_text(row.late_ns),
          op_text(row.last),
          row.last ? seconds_text(row.last->age_ns) : "-",
          in_flight,
          in_flight == "-" ? "-" : seconds_text(row.oldest_open->age_ns),
          format_decimal(row.ops_per_s, row.ops_per_s < 100 ? 1 : 0),
          format_decimal(row.bytes_per_s / 1e9, 2),
          format_count(row.dropped),
          seconds_text(row.heartbeat_age_ns)};
}

constexpr std::string_view kHeadings[] = {
    "rank", "<host",      "<GPU", "<state", "behind", "late",    "<last operation",
    "ago",  "<in flight", "for",  "ops/s",  "GB/s",   "dropped", "beat"};
constexpr size_t kColumns = std::size(kHeadings);
// Who stands where, and for how long, is kept longest.
constexpr size_t kByPriority[] = {0, 3, 4, 5, 6, 7, 8, 9, 1, 2, 11, 10, 12, 13};
static_assert(std::size(kByPriority) == kColumns);

std::string_view heading(size_t column) {
  return kHeadings[column].substr(kHeadings[column].starts_with('<') ? 1 : 0);
}

// The column that a sort is by says why the rows stand as they do.
size_t column_of(SortKey key) {
  switch (key) {
    case SortKey::kRank:
      return 0;
    case SortKey::kLateness:
      return 5;
    case SortKey::kBandwidth:
      return 11;
    case SortKey::kOps:
      return 10;
    case SortKey::kInFlight:
      return 9;
    case SortKey::kDropped:
      return 12;
  }
  return 0;
}

struct Chosen {
  std::vector<std::string> lines;  // heading, rule, rows
  std::string hidden;              // the headings of columns that had no room
};

// The heading, a rule and the rows, with the columns of `kept` alone.
std::vector<std::string> lines_of(const std::vector<std::vector<std::string>>& rows,
                                  const std::array<bool, kColumns>& kept) {
  auto picked = [&](auto&& cell) {
    std::vector<std::string> out;
    for (size_t i = 0; i < kColumns; ++i) {
      if (kept[i]) out.emplace_back(cell(i));
    }
    return out;
  };
  // The table is laid out anew for each choice of columns, as widths depend on the rows that are shown. That
  // is at most once a column.
  Table table(picked([](size_t i) { return kHeadings[i]; }));
  for (const auto& row : rows) table.add(picked([&](size_t i) { return row[i]; }));
  const std::string text = table.text("", SIZE_MAX);
  const auto all = lines(text);
  return {all.begin(), all.end()};
}

// As many columns as the width takes, whole ones, the more important ones first.
Chosen fitting(const std::vector<std::vector<std::string>>& rows, const ViewOptions& options) {
  std::array<bool, kColumns> kept;
  kept.fill(true);
  Chosen chosen{.lines = lines_of(rows, kept), .hidden = {}};
  // Line 1 is the rule, which is as wide as the widest row.
  if (columns(chosen.lines[1]) <= options.width) return chosen;
  kept.fill(false);
  auto try_one = [&](size_t column, bool needed) {
    if (kept[column]) return;
    kept[column] = true;
    auto lines = lines_of(rows, kept);
    kept[column] = needed || columns(lines[1]) <= options.width;
    if (kept[column]) chosen.lines = std::move(lines);
  };
  // Without the rank a row says nothing, so it stays even where it is too wide.
  try_one(kByPriority[0], true);
  try_one(column_of(options.sort), false);
  for (size_t column : kByPriority) try_one(column, false);
  for (size_t i = 0; i < kColumns; ++i) {
    if (!kept[i]) chosen.hidden += (chosen.hidden.empty() ? "" : ", ") + std::string(heading(i));
  }
  return chosen;
}

// In lines of the width; what would take more than `most` is cut.
std::vector<Line> wrapped(const std::string& text, Mood mood, size_t width, size_t most) {
  const std::string folded = width == SIZE_MAX ? text : wrap(text, 0, width);
  std::vector<Line> out;
  for (std::string_view line : lines(folded)) {
    if (out.size() < most) out.push_back({cut(std::string(line), width), mood});
  }
  if (out.empty()) out.push_back({"", mood});
  return out;
}

// In one line of the width, which is cut; or whole, in as many as it takes.
std::string sentence(const std::string& text, const ViewOptions& options) {
  if (options.cut) return cut(text, options.width);
  return options.width == SIZE_MAX ? text : wrap(text, 0, options.width);
}

std::string folded_text(const std::vector<const live::RankRow*>& rows, live::Health health) {
  std::vector<int32_t> numbers;
  for (const live::RankRow* row : rows) {
    if (row->health == health && row->rank >= 0) numbers.push_back(row->rank);
  }
  size_t count = static_cast<size_t>(std::count_if(
      rows.begin(), rows.end(), [&](const live::RankRow* row) { return row->health == health; }));
  if (count == 0) return {};
  // A list that lacks some ranks would look complete.
  const bool all_known = numbers.size() == count;
  std::sort(numbers.begin(), numbers.end());
  // A rank that was restarted has several processes.
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string which = all_known ? ": " + wording::ranks(numbers) : "";
  switch (health) {
    case live::Health::kEnded:
      return plural(count, "rank") + " ended normally" + which;
    case live::Health::kReplaced:
      return plural(count, "process") + " replaced" + which;
    case live::Health::kWaits:
      return plural(count, "rank") + (count == 1 ? " waits" : " wait") + " for others" + which;
    default:
      return plural(count, "rank") + " healthy" + which;
  }
}

Line sums_line(const live::RankRows& seen) {
  std::array<size_t, live::kHealths> by_health{};
  double ops = 0, bytes = 0;
  uint64_t dropped = 0;
  size_t ranks = 0;
  for (const live::RankRow& row : seen.rows) {
    if (row.health == live::Health::kHelper) continue;
    // A replaced process is not a rank any more; its successor counts.
    ranks += row.health != live::Health::kReplaced;
    ++by_health[static_cast<size_t>(row.health)];
    ops += row.ops_per_s;
    bytes += row.bytes_per_s;
    dropped += row.dropped;
  }
  std::string text = plural(ranks, "rank");
  for (size_t i = 0; i < by_health.size(); ++i) {
    if (by_health[i] > 0)
      text += ", " + format_count(by_health[i]) + ' ' +
              std::string(live::health_text(static_cast<live::Health>(i)));
  }
  text +=
      "; " + format_count(static_cast<uint64_t>(ops)) + " ops/s, " + format_decimal(bytes / 1e9, 2) + " GB/s";
  if (dropped > 0) text += "; " + plural(dropped, "event") + " dropped";
  return {text, Mood::kPlain};
}

}  // namespace

View make_view(const live::RankRows& seen, const ViewOptions& options) {
  std::vector<const live::RankRow*> shown, folded;
  for (const live::RankRow& row : seen.rows) {
    if (row.health != live::Health::kHelper) shown.push_back(&row);
  }
  if (options.fold && shown.size() > options.rows) {
    const auto first_quiet = std::stable_partition(shown.begin(), shown.end(),
                                                   [](const live::RankRow* row) { return !quiet(*row); });
    folded.assign(first_quiet, shown.end());
    shown.erase(first_quiet, shown.end());
  }
  std::stable_sort(shown.begin(), shown.end(), [&](const live::RankRow* a, const live::RankRow* b) {
    return before(*a, *b, options.sort);
  });
  if (options.reverse) std::reverse(shown.begin(), shown.end());

  View view;
  view.verdict = wrapped(seen.verdict, seen.alarming ? Mood::kBad : Mood::kGood, options.width,
                         options.cut ? kVerdictLines : SIZE_MAX);
  view.sums = sums_line(seen);
  view.sums.text = sentence(view.sums.text, options);
  std::vector<std::string> fold_lines;
  for (live::Health health : kQuiet) {
    if (std::string text = folded_text(folded, health); !text.empty()) fold_lines.push_back(text);
  }
  const size_t taken = fold_lines.size() + view.verdict.size() - 1;
  // One row at least, however small the terminal.
  size_t room = options.rows > taken ? options.rows - taken : 1;
  // Scrolling past the end shows the last row.
  size_t first = std::min(options.first, shown.empty() ? 0 : shown.size() - 1);
  size_t end = shown.size() - first > room ? first + room : shown.size();
  view.more = shown.size() - end;
  std::vector<std::vector<std::string>> rows;
  for (size_t i = first; i < end; ++i) rows.push_back(cells(*shown[i]));
  Chosen chosen = fitting(rows, options);
  view.heading = {cut(chosen.lines[0], options.width), Mood::kHeading};
  if (!chosen.hidden.empty()) view.hidden = {sentence("no room for " + chosen.hidden, options), Mood::kFaint};
  for (size_t i = first; i < end; ++i)
    view.table.push_back({cut(chosen.lines[2 + i - first], options.width), mood_of(*shown[i])});
  for (std::string& line : fold_lines) view.table.push_back({sentence(line, options), Mood::kGood});
  return view;
}

Json view_json(const live::RankRows& seen) {
  auto op_json = [](const std::optional<live::SeenOp>& op) -> Json {
    if (!op) return nullptr;
    return {{"func", op->func},
            {"comm", op->comm.empty() ? Json(nullptr) : Json(op->comm)},
            {"number", op->number ? Json(*op->number) : Json(nullptr)},
            {"age_ns", op->age_ns}};
  };
  Json ranks = Json::array();
  for (const live::RankRow& row : seen.rows) {
    if (row.health == live::Health::kHelper) continue;
    ranks.push_back({{"rank", known(row.rank)},
                     {"host", row.host},
                     {"pid", row.pid},
                     {"device", known(row.device)},
                     {"pci", row.pci.empty() ? Json(nullptr) : Json(row.pci)},
                     {"state", live::health_text(row.health)},
                     {"waits_for", row.waits_for.empty() ? Json(nullptr) : Json(row.waits_for)},
                     {"behind", row.behind},
                     {"late_ns", row.late_ns},
                     {"behind_comm", row.behind == 0 ? Json(nullptr) : Json(row.behind_comm)},
                     {"last", op_json(row.last)},
                     {"in_flight", row.open},
                     {"oldest_in_flight", op_json(row.oldest_open)},
                     {"ops_per_s", row.ops_per_s},
                     {"bytes_per_s", row.bytes_per_s},
                     {"dropped", row.dropped},
                     {"heartbeat_age_ns", known(row.heartbeat_age_ns)}});
  }
  return {{"schema", "lockstep.top.v1"},
          {"verdict", seen.verdict},
          {"alarming", seen.alarming},
          {"ranks", std::move(ranks)}};
}

}  // namespace lockstep::cli::top
