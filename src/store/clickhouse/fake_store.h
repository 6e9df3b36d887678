// SPDX-License-Identifier: Apache-2.0
// As much of ClickHouse as a push asks of it, in memory: tables that keep the newest row of a key, blocks in
// the Native format, and the counts. A test makes it fail where it likes.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "store/clickhouse/wire/loopback_server.h"
#include "store/clickhouse/wire/unpacked_frames.h"

namespace lockstep::store::clickhouse {

// What is stored may be looked at while no push goes on.
class FakeStore {
 public:
  struct Cell {
    std::string bytes;    // as they came
    uint64_t number = 0;  // of an integer
    uint64_t length = 0;  // of a text or an array
  };
  using Row = std::map<std::string, Cell>;
  struct StoredTable {
    std::vector<std::pair<std::string, std::string>> columns;  // name, type
    std::vector<std::string> key;
    std::map<std::string, Row> rows;  // by key
  };

  // Fails an insert instead of, or after, storing it.
  // kRefuse: nothing is stored, and the server says so. kLoseAnswer: all is stored, and the connection ends.
  enum class Fault { kNone, kRefuse, kLoseAnswer };
  // Asked with the table's name and the number of the insert.
  std::function<Fault(const std::string& table, int insert)> fault;

  bool lose_alter = false;  // ALTERs are carried out, and never answered

  // By name, without the database, which is always `fleet`.
  std::map<std::string, StoredTable> tables;
  std::vector<std::string> inserts;   // names of tables, in order
  std::atomic<int> column_reads = 0;  // once by each writer that finds all of its tables

  std::string url() const { return "http://" + server_.host() + "/fleet"; }

 private:
  using Reply = LoopbackServer::Reply;
  // Knows the statements that Lockstep sends, by their text. Any other is answered as a server answers bad
  // SQL.
  Reply answer(const LoopbackServer::Request& request) {
    const std::string statement =
        request.query().starts_with("query=") ? request.query().substr(6) : request.body;
    std::smatch found;
    if (statement.find("version()") != statement.npos) return LoopbackServer::reply(200, "18.16.1\n");
    if (statement.find("system.columns") != statement.npos) {
      ++column_reads;
      return LoopbackServer::reply(200, known_columns());
    }
    if (statement.starts_with("CREATE DATABASE")) return LoopbackServer::reply(200, "");
    if (std::regex_search(statement, found, std::regex("^CREATE TABLE IF NOT EXISTS `fleet`\\.`(\\w+)`")))
      return create(found[1], statement);
    if (std::regex_search(
            statement, found,
            std::regex("^ALTER TABLE `fleet`\\.`(\\w+)` ADD COLUMN `(\\w+)` (\\S+) AFTER `(\\w+)`$")))
      return add_column(tables[found[1]].columns, {found[2], found[3]}, found[4]);
    if (std::regex_search(statement, found, std::regex("^INSERT INTO `fleet`\\.`(\\w+)`")))
      return insert(found[1], statement.find("&decompress=1&") == statement.npos
                                  ? request.body
                                  : unpacked_frames(request.body));
    if (statement.starts_with("SELECT name, max(seen_ns)")) return followed_runs();
    if (std::regex_search(statement, found,
                          std::regex("^SELECT (.*) FROM `fleet`\\.`?(\\w+)`? FINAL WHERE run = (\\d+)")) &&
        tables.contains(found[2]))
      return select(found[1], tables[found[2]], std::stoull(found[3]));
    return LoopbackServer::reply(500, "Code: 62, e.displayText() = DB::Exception: " + statement);
  }

  Reply followed_runs() {
    std::map<std::string, int64_t> newest;
    for (const auto& [key, row] : tables["now_processes"].rows)
      newest[row.at("name").bytes] =
          std::max(newest[row.at("name").bytes], static_cast<int64_t>(row.at("seen_ns").number));
    std::string text;
    for (const auto& [name, seen] : newest) text += name + "\t" + std::to_string(seen) + "\n";
    return LoopbackServer::reply(200, text);
  }

  std::string known_columns() const {
    std::string rows;
    for (const auto& [name, table] : tables)
      for (const auto& [column, type] : table.columns) rows += name + "\t" + column + "\t" + type + "\n";
    return rows;
  }

  // Columns and key as they stand in the statement, so that tests see what a server would get.
  Reply create(const std::string& name, const std::string& statement) {
    StoredTable table;
    const std::regex column("`(\\w+)` ([A-Z]\\w*(\\(\\w+\\))?)");
    for (std::sregex_iterator at(statement.begin(), statement.end(), column), end; at != end; ++at)
      table.columns.emplace_back((*at)[1], (*at)[2]);
    const std::string keys = statement.substr(statement.find("ORDER BY (") + 10);
    const std::regex word("\\w+");
    for (std::sregex_iterator at(keys.begin(), keys.end(), word), end; at != end; ++at)
      table.key.push_back(at->str());
    tables.try_emplace(name, table);
    return LoopbackServer::reply(200, "");
  }

  Reply add_column(std::vector<std::pair<std::string, std::string>>& columns,
                   const std::pair<std::string, std::string>& added, const std::string& after) {
    const auto is = [&](const std::string& name) {
      return [name](const auto& column) { return column.first == name; };
    };
    if (std::any_of(columns.begin(), columns.end(), is(added.first)))
      return LoopbackServer::reply(500, "Code: 44, e.displayText() = DB::Exception: it is there");
    const auto at = std::find_if(columns.begin(), columns.end(), is(after));
    EXPECT_NE(at, columns.end());
    columns.insert(at + 1, added);
    return lose_alter ? Reply{} : LoopbackServer::reply(200, "");
  }

  // Takes a block apart.
  struct Bytes {
    const std::string& all;
    size_t at = 0;
    std::string take(size_t count) {
      EXPECT_LE(at + count, all.size());
      at += count;
      return all.substr(at - count, count);
    }
    uint64_t varint() {
      uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(take(1)[0]);
        value |= uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
      }
    }
    std::string text() { return take(varint()); }
    uint64_t number(size_t width, bool is_signed) {
      const std::string raw = take(width);
      uint64_t value = 0;
      std::memcpy(&value, raw.data(), width);
      if (is_signed && width == 4) value = static_cast<uint64_t>(int64_t{static_cast<int32_t>(value)});
      return value;
    }
  };
  // One column of a block. Values stay as bytes too, since keys are made of them.
  static std::vector<Cell> cells(const std::string& type, size_t rows, Bytes& bytes) {
    static const std::map<std::string, size_t> kWidths = {{"UInt8", 1},  {"Date", 2},   {"DateTime", 4},
                                                          {"UInt32", 4}, {"Int32", 4},  {"UInt64", 8},
                                                          {"Int64", 8},  {"Float64", 8}};
    std::vector<Cell> column(rows);
    if (const auto width = kWidths.find(type); width != kWidths.end()) {
      for (Cell& cell : column) {
        cell.bytes = bytes.all.substr(bytes.at, width->second);
        cell.number = bytes.number(width->second, type == "Int32");
      }
    } else if (type == "String") {
      for (Cell& cell : column) {
        cell.bytes = bytes.text();
        cell.length = cell.bytes.size();
      }
    } else {
      uint64_t before = 0;
      for (Cell& cell : column) {
        const uint64_t end = bytes.number(8, false);
        cell.length = end - before;
        before = end;
      }
      for (Cell& cell : column)
        for (uint64_t i = 0; i < cell.length; ++i)
          cell.bytes += type == "Array(Int32)" ? bytes.take(4) : bytes.text() + "|";
    }
    return column;
  }

  Reply insert(const std::string& name, const std::string& body) {
    const int count = static_cast<int>(inserts.size());
    const Fault what = fault ? fault(name, count) : Fault::kNone;
    inserts.push_back(name);
    if (what == Fault::kRefuse)
      return LoopbackServer::reply(500, "Code: 252, e.displayText() = Too many parts");
    StoredTable& table = tables[name];
    Bytes bytes{body};
    const size_t columns = bytes.varint(), rows = bytes.varint();
    std::vector<Row> block(rows);
    EXPECT_EQ(columns, table.columns.size()) << name;
    for (size_t i = 0; i < columns; ++i) {
      const std::string column = bytes.text(), type = bytes.text();
      EXPECT_EQ(std::pair(column, type), table.columns[i]) << name;
      const std::vector<Cell> values = cells(type, rows, bytes);
      for (size_t row = 0; row < rows; ++row) block[row][column] = values[row];
    }
    EXPECT_EQ(bytes.at, body.size()) << name;
    std::set<std::string> days;
    for (Row& row : block) {
      days.insert(row["day"].bytes);
      std::string key;
      for (const std::string& column : table.key) key += row[column].bytes + "\x1f";
      Row& stored = table.rows[key];
      // As ReplacingMergeTree: of equal versions the later one stays.
      if (stored.empty() || stored["version"].number <= row["version"].number) stored = row;
    }
    EXPECT_EQ(days.size(), 1u) << "a batch is of one partition: " << name;
    return what == Fault::kLoseAnswer ? Reply{} : LoopbackServer::reply(200, "");
  }

  // As TabSeparated has it.
  static std::string cell_text(const StoredTable& table, const Row& row, const std::string& column) {
    const Cell& cell = row.at(column);
    const auto type = std::find_if(table.columns.begin(), table.columns.end(),
                                   [&](const auto& of) { return of.first == column; });
    if (type->second.starts_with("Int")) return std::to_string(static_cast<int64_t>(cell.number));
    if (type->second != "String") return std::to_string(cell.number);
    static const std::map<char, std::string> kEscapes = {{'\0', "\\0"}, {'\b', "\\b"}, {'\f', "\\f"},
                                                         {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"},
                                                         {'\'', "\\'"}, {'\\', "\\\\"}};
    std::string text;
    for (const char c : cell.bytes) {
      const auto escape = kEscapes.find(c);
      text += escape == kEscapes.end() ? std::string(1, c) : escape->second;
    }
    return text;
  }

  // Two shapes: columns of all rows of the run, or one row of counts and sums (sums_sql).
  static Reply select(const std::string& items, const StoredTable& table, uint64_t run) {
    std::vector<const Row*> rows;
    for (const auto& [key, row] : table.rows)
      if (row.at("run").number == run) rows.push_back(&row);
    const std::regex item("[^,]+");
    if (items.find('(') == items.npos) {  // columns
      std::string text;
      const std::regex word("\\w+");
      for (const Row* row : rows) {
        size_t cells = 0;
        for (std::sregex_iterator at(items.begin(), items.end(), word), end; at != end; ++at)
          text += (cells++ == 0 ? "" : "\t") + cell_text(table, *row, at->str());
        text += "\n";
      }
      return LoopbackServer::reply(200, text);
    }
    std::string line;
    for (std::sregex_iterator at(items.begin(), items.end(), item), end; at != end; ++at) {
      const std::string one = at->str();
      uint64_t sum = one == "count()" ? rows.size() : 0;
      std::smatch column;
      if (std::regex_search(one, column, std::regex("`(\\w+)`")))
        for (const Row* row : rows)
          sum += one.find("length(") != one.npos ? row->at(column[1]).length : row->at(column[1]).number;
      line += (line.empty() ? "" : "\t") + std::to_string(sum);
    }
    return LoopbackServer::reply(200, line + "\n");
  }

  LoopbackServer server_{[this](const LoopbackServer::Request& request) { return answer(request); }};
};

}  // namespace lockstep::store::clickhouse
