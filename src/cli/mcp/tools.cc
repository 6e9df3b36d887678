// SPDX-License-Identifier: Apache-2.0
// The tools are commands of this program, run in a child by the same parser and code: an agent gets the
// answers that people get. Paths are resolved before a command sees them. Options are built here from checked
// values: no text of a client becomes an option.
#include "cli/mcp/tools.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/command.h"
#include "cli/kit/console.h"
#include "cli/mcp/confined_child.h"
#include "store/query.h"

namespace lockstep::cli::mcp {
namespace {

namespace fs = std::filesystem;

// Answers are kept for their pages, so they are bounded in memory as well.
constexpr size_t kMostOutput = 16 << 20;
constexpr size_t kMostPaths = 64, kMostTextArgument = 64 << 10;
constexpr int64_t kMostRows = 1000, kFewRows = 100;
// SQLite stops at this time by itself; the child gets five seconds more before it is killed.
constexpr std::chrono::seconds kSqlPatience{10};

Json text_property(std::string_view meaning) { return {{"type", "string"}, {"description", meaning}}; }
Json number_property(std::string_view meaning) {
  return {{"type", "integer"}, {"minimum", 0}, {"description", meaning}};
}
Json paths_property() {
  return {{"type", "array"},
          {"items", {{"type", "string"}}},
          {"minItems", 1},
          {"maxItems", kMostPaths},
          {"description", "run directories, trace.dbs, dumps, logs, archives: of one job"}};
}
Json json_property() {
  return {{"type", "boolean"},
          {"description", "the command's JSON instead of its text; docs/schemas has its schema"}};
}

Result<std::string> text_of(const Json& arguments, const std::string& key) {
  const Json& value = arguments[key];
  if (!value.is_string()) return usage_error(key + ": a text is expected");
  const std::string& text = value.get_ref<const std::string&>();
  // A NUL would cut the text where it becomes a C string.
  if (text.empty() || text.size() > kMostTextArgument || text.find('\0') != std::string::npos)
    return usage_error(key + ": empty, too long, or holds a NUL");
  return text;
}

class Confined {
 public:
  explicit Confined(ToolLimits limits) : limits_(std::move(limits)) {}

  // A path of the user's, without links; an error if it lies elsewhere. Whether it exists elsewhere is not
  // told.
  Result<std::string> path(const std::string& asked) const {
    std::error_code failed;
    for (const std::string& folder : limits_.folders) {
      // An absolute path replaces the root, and is accepted only if it lies below it.
      const fs::path whole = fs::canonical(fs::path(folder) / asked, failed);
      if (failed || !is_below(whole, folder)) continue;
      if (fs::is_directory(whole, failed) && has_way_out(whole, kFoldersRead))
        return usage_error(asked.substr(0, 256) +
                           ": a link in it leads outside the folders that this server may read");
      return whole.string();
    }
    return usage_error(asked.substr(0, 256) + ": missing, or outside the folders that this server may read");
  }
  Result<std::string> path_argument(const Json& arguments, const std::string& key) const {
    LOCKSTEP_ASSIGN(const std::string asked, text_of(arguments, key));
    return path(asked);
  }
  Result<std::vector<std::string>> paths(const Json& arguments) const {
    const Json& list = arguments["paths"];
    if (!list.is_array() || list.empty() || list.size() > kMostPaths)
      return usage_error("paths: a list of 1 to 64 is expected");
    std::vector<std::string> found;
    for (const Json& one : list) {
      LOCKSTEP_ASSIGN(found.emplace_back(), path_argument({{"paths", one}}, "paths"));
    }
    return found;
  }

  // Runs a command as the command line does.
  Result<ToolAnswer> run(std::string_view name, const Json& arguments, std::vector<std::string> words,
                         const std::vector<std::string>& operands) const {
    if (const auto json = arguments.find("json"); json != arguments.end()) {
      if (!json->is_boolean()) return usage_error("json: true or false is expected");
      if (json->get<bool>()) words.emplace_back("--json");
    }
    // A file name that begins with a dash is no option.
    words.emplace_back("--");
    words.insert(words.end(), operands.begin(), operands.end());
    const Command& command = *find_command(name);
    std::vector<const char*> raw;
    for (const std::string& word : words) raw.push_back(word.c_str());
    auto parsed = parse_arguments(command.options, command.operands, raw);
    if (!parsed) return parsed.error();
    LOCKSTEP_ASSIGN(ChildAnswer answer,
                    run_confined([&] { return command.run(*parsed); }, limits_.patience, kMostOutput));
    // 1 and 3 are answers; 125 is a child whose command threw or never began.
    if (answer.code == kExitUsage || answer.code > kExitCannotTell)
      return usage_error(answer.err.empty() ? "failed with exit code " + std::to_string(answer.code)
                                            : answer.err);
    return ToolAnswer{std::move(answer.out), answer.code};
  }

  Result<ToolAnswer> sql(const Json& arguments) const {
    LOCKSTEP_ASSIGN(const std::string database, path_argument(arguments, "database"));
    LOCKSTEP_ASSIGN(const std::string query, text_of(arguments, "query"));
    store::QueryLimits limits{.rows = kFewRows, .time = kSqlPatience};
    if (const auto rows = arguments.find("rows"); rows != arguments.end()) {
      if (!rows->is_number_integer() || *rows < 1 || *rows > kMostRows) return usage_error("rows: 1 to 1000");
      limits.rows = rows->get<size_t>();
    }
    const auto work = [&] {
      const auto answer = store::query(database, query, limits);
      if (!answer) return fail(answer.error());
      Json rows = Json::array();
      for (const auto& row : answer->rows) {
        Json cells = Json::array();
        for (const store::Cell& cell : row)
          std::visit([&](const auto& value) { cells.push_back(json_of(value)); }, cell);
        rows.push_back(std::move(cells));
      }
      // A row a line, so that pages end between rows.
      std::string text = "{\"schema\":\"lockstep.sql.v1\",\"columns\":" + one_line(answer->columns) +
                         ",\"more\":" + (answer->more ? "true" : "false") + ",\"rows\":[";
      for (size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "\n" : ",\n") + one_line(rows[i]);
      return print(text + "]}\n");
    };
    LOCKSTEP_ASSIGN(ChildAnswer answer,
                    run_confined(work, kSqlPatience + std::chrono::seconds(5), kMostOutput));
    if (answer.code != kExitOk) return usage_error(answer.err);
    return ToolAnswer{std::move(answer.out), answer.code};
  }

 private:
  // Readers follow links in a folder and in those in it, wherever they lead.
  static constexpr int kFoldersRead = 2;
  static bool is_below(const fs::path& whole, const fs::path& root) {
    return std::mismatch(root.begin(), root.end(), whole.begin(), whole.end()).first == root.end();
  }
  bool has_way_out(const fs::path& folder, int deep) const {
    std::error_code failed, unknown;
    for (fs::directory_iterator at(folder, fs::directory_options::skip_permission_denied, failed), end;
         !failed && at != end; at.increment(failed)) {
      // A link that leads nowhere is empty then, and nothing is read of it.
      const fs::path whole = at->is_symlink(unknown) ? fs::canonical(at->path(), unknown) : at->path();
      if (whole.empty()) continue;
      if (std::none_of(limits_.folders.begin(), limits_.folders.end(),
                       [&](const std::string& root) { return is_below(whole, root); }))
        return true;
      if (deep > 1 && fs::is_directory(whole, unknown) && has_way_out(whole, deep - 1)) return true;
    }
    return false;
  }
  static Json json_of(std::monostate) { return nullptr; }
  static Json json_of(int64_t value) { return value; }
  static Json json_of(double value) { return value; }
  static Json json_of(const std::string& value) { return value; }
  static std::string one_line(const Json& value) {
    std::string line = json_line(value);
    line.pop_back();
    return line;
  }

  const ToolLimits limits_;
};

Json schema(Json properties, Json required) {
  return {{"properties", std::move(properties)}, {"required", std::move(required)}};
}

// Options of `show`, where they are given.
Result<std::vector<std::string>> show_words(const Json& arguments) {
  std::vector<std::string> words;
  for (const char* name : {"comm", "op"}) {
    if (!arguments.contains(name)) continue;
    LOCKSTEP_ASSIGN(const std::string value, text_of(arguments, name));
    // With `=`, so that a value that begins with a dash cannot become an option.
    words.push_back("--" + std::string(name) + "=" + value);
  }
  for (const char* name : {"rank", "limit"}) {
    const auto number = arguments.find(name);
    if (number == arguments.end()) continue;
    if (!number->is_number_integer() || *number < 0 || *number > INT32_MAX)
      return usage_error(std::string(name) + ": expected a number from 0 on");
    words.push_back("--" + std::string(name) + "=" + std::to_string(number->get<int64_t>()));
  }
  return words;
}

}  // namespace

std::vector<Tool> all_tools(const ToolLimits& limits) {
  const auto confined = std::make_shared<const Confined>(limits);
  const auto with_paths = [confined](std::string_view command) {
    return [confined, command](const Json& arguments) -> Result<ToolAnswer> {
      LOCKSTEP_ASSIGN(const auto paths, confined->paths(arguments));
      return confined->run(command, arguments, {}, paths);
    };
  };
  return {
      {"diagnose",
       "Says which rank, call or link holds a job back, with evidence and what to do next. exit_code: 0 no "
       "problem, 1 a problem, 3 cannot tell.",
       [] {
         return schema({{"paths", paths_property()}, {"json", json_property()}}, {"paths"});
       },
       with_paths("diagnose")},
      {"summary",
       "Sums up operations by size with times and bandwidths, ranks, steps, exposed communication, transfers.",
       [] {
         return schema({{"paths", paths_property()}, {"json", json_property()}}, {"paths"});
       },
       with_paths("summary")},
      {"show", "Lists a run's operations, or shows one on all ranks with every event.",
       [] {
         return schema({{"paths", paths_property()},
                        {"comm", text_property("a communicator by its name, or its id in hex")},
                        {"op", text_property("number of the operation as verdicts print it, or p2p:A-B:N")},
                        {"rank", number_property("only the events of this rank")},
                        {"limit", number_property("rows of the list")},
                        {"json", json_property()}},
                       {"paths"});
       },
       [confined](const Json& arguments) -> Result<ToolAnswer> {
         LOCKSTEP_ASSIGN(const auto paths, confined->paths(arguments));
         LOCKSTEP_ASSIGN(auto words, show_words(arguments));
         return confined->run("show", arguments, std::move(words), paths);
       }},
      {"explain", "Explains what a finding means and what to do; without an id, lists all ids.",
       [] {
         return schema({{"id", text_property("such as never-joined")}}, Json::array());
       },
       [confined](const Json& arguments) -> Result<ToolAnswer> {
         std::vector<std::string> operands;
         if (arguments.contains("id")) {
           LOCKSTEP_ASSIGN(operands.emplace_back(), text_of(arguments, "id"));
         }
         return confined->run("explain", Json::object(), {}, operands);
       }},
      {"compare",
       "Says what is faster or slower in run b than in run a. exit_code: 1 something got worse, 3 no answer.",
       [] {
         return schema({{"a", text_property("the run to compare with, the baseline")},
                        {"b", text_property("the run in question")},
                        {"json", json_property()}},
                       {"a", "b"});
       },
       [confined](const Json& arguments) -> Result<ToolAnswer> {
         LOCKSTEP_ASSIGN(const std::string a, confined->path_argument(arguments, "a"));
         LOCKSTEP_ASSIGN(const std::string b, confined->path_argument(arguments, "b"));
         return confined->run("compare", arguments, {}, {a, b});
       }},
      {"sql",
       "One SELECT on a trace.db, within 10 s. Views: ops, processes, comms, kernels, ranges, losses; "
       "their columns are in sqlite_schema. docs/schemas has the answer's schema.",
       [] {
         return schema({{"database", text_property("a trace.db")},
                        {"query", text_property("one SELECT of SQLite")},
                        {"rows",
                         {{"type", "integer"},
                          {"minimum", 1},
                          {"maximum", kMostRows},
                          {"description", "at most; 100 if not given"}}}},
                       {"database", "query"});
       },
       [confined](const Json& arguments) { return confined->sql(arguments); }},
  };
}

}  // namespace lockstep::cli::mcp
