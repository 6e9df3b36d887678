// SPDX-License-Identifier: Apache-2.0
// An answer of the store for people and for programs. Cells come as text, and each column's kind says how to
// read them. Names in them are anybody's, and tables tame them.
#include "cli/fleet/answer_text.h"

#include <charconv>
#include <cmath>

#include "base/text/units.h"
#include "cli/kit/table.h"
#include "model/torch/process_group.h"

namespace lockstep::cli::fleet {
namespace {

using Kind = store::FleetColumn::Kind;

template <typename Number>
Number parse(const std::string& cell) {
  Number value{};
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

std::string size_text(int64_t bits) {
  constexpr int64_t kMost = 63;
  // Size classes are powers of two: class n begins at 2^(n-1) bytes.
  return bits <= 0 ? "0 B" : "from " + format_bytes(uint64_t{1} << (std::min(bits, kMost) - 1));
}

std::string cell_text(Kind kind, const std::string& cell) {
  // Below this the digits of a chance say nothing.
  constexpr double kLeastChance = 1e-4;
  switch (kind) {
    case Kind::kText:
      return cell.empty() ? "-" : cell;
    case Kind::kCount:
      return format_count(parse<uint64_t>(cell));
    case Kind::kSpan:
      return parse<double>(cell) >= 0 ? format_duration(parse<double>(cell)) : "-";
    case Kind::kShare: {
      const auto value = parse<double>(cell);
      // Of nothing: 0 / 0.
      if (!std::isfinite(value)) return "-";
      return value < 0 ? "-" + format_percent(-value) : format_percent(value);
    }
    case Kind::kChance:
      return parse<double>(cell) < kLeastChance ? "< 0.01 %" : format_percent(parse<double>(cell));
    case Kind::kHours:
    case Kind::kRate:
    case Kind::kNumber:
      return std::isfinite(parse<double>(cell)) ? format_short(parse<double>(cell)) : "-";
    case Kind::kTime:
      return format_time(parse<int64_t>(cell));
    case Kind::kSize:
      return size_text(parse<int64_t>(cell));
    case Kind::kVersion:
      return model::nccl_version_text(parse<int32_t>(cell));
  }
  return cell;
}

Json cell_json(Kind kind, const std::string& cell) {
  const auto real = parse<double>(cell);
  switch (kind) {
    case Kind::kText:
      return cell;
    case Kind::kCount:
    case Kind::kSize:
    case Kind::kVersion:
      return parse<int64_t>(cell);
    case Kind::kTime:
      // 0 is an unknown time.
      return parse<int64_t>(cell) == 0 ? Json() : Json(parse<int64_t>(cell));
    case Kind::kSpan:
      return real >= 0 ? Json(real) : Json();
    default:
      // JSON has neither NaN nor infinity.
      return std::isfinite(real) ? Json(real) : Json();
  }
}

// "changed_after_ns" -> "changed after": the cell has its unit, or the heading's words do.
std::string heading(const store::FleetColumn& column) {
  std::string text(column.name);
  for (const std::string_view unit : {"_ns", "_bits"})
    if (text.ends_with(unit)) text.resize(text.size() - unit.size());
  for (char& c : text)
    if (c == '_') c = ' ';
  if (column.kind == Kind::kRate) text += " GB/s";
  return std::string(static_cast<size_t>(column.spare), '~') + (column.kind == Kind::kText ? "<" : "") + text;
}

}  // namespace

std::string answer_text(const store::FleetQuestion& question, const store::FleetAnswer& answer,
                        uint32_t days) {
  const std::string span = " in " + plural(days, "day") + " of " + answer.database;
  std::string text;
  if (answer.rows.empty()) {
    text = std::string(question.none) + span + "\n";
  } else {
    text = std::string(question.title) + span + ":\n\n";
    std::vector<std::string> headings;
    for (const store::FleetColumn& column : question.columns) headings.push_back(heading(column));
    Table table(headings);
    for (const auto& row : answer.rows) {
      std::vector<std::string> cells;
      for (size_t i = 0; i < row.size(); ++i) cells.push_back(cell_text(question.columns[i].kind, row[i]));
      table.add(std::move(cells));
    }
    text += table.text();
  }
  if (answer.is_cut)
    text += "\nThere are more: these are the first " + format_count(answer.rows.size()) + ".\n";
  if (answer.without_rollups > 0)
    text += "\n" + plural(answer.without_rollups, "run") +
            " of an earlier Lockstep could not be counted: push them again.\n";
  return text;
}

Json answer_json(const store::FleetQuestion& question, const store::FleetAnswer& answer, uint32_t days) {
  Json rows = Json::array();
  for (const auto& row : answer.rows) {
    Json& cells = rows.emplace_back(Json::object());
    for (size_t i = 0; i < row.size(); ++i)
      cells[std::string(question.columns[i].name)] = cell_json(question.columns[i].kind, row[i]);
  }
  return {{"schema", "lockstep.fleet.v1"},
          {"question", question.name},
          {"database", answer.database},
          {"days", days},
          {"rows", rows},
          {"is_cut", answer.is_cut},
          {"runs_without_rollups", answer.without_rollups}};
}

}  // namespace lockstep::cli::fleet
