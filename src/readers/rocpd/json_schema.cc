// SPDX-License-Identifier: Apache-2.0
// rocprofv3's JSON: one object a process, with agents, symbols of kernels, and records by kind. Of a file
// that is cut, all records that lie before the cut are there.
#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "readers/rocpd/schema.h"

namespace lockstep::readers::rocpd {
namespace {

using simdjson::dom::element;

// Calls visit(key, value), or visit(value). A value that is no object has no fields, one that is no array no
// elements.
template <class Visit>
void each_field(element value, Visit&& visit) {
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return;
  for (const auto& [key, of] : object) visit(key, of);
}
template <class Visit>
void each_element(element value, Visit&& visit) {
  simdjson::dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return;
  for (const element of : array) visit(of);
}

// Left as it is where the value is of another type.
void take(element value, int64_t& number) {
  uint64_t found = 0;
  if (value.get(found) == simdjson::SUCCESS) number = static_cast<int64_t>(found);
}
void take(element value, std::string& text) {
  std::string_view found;
  constexpr size_t kLongest = 4096;
  if (value.get(found) == simdjson::SUCCESS) text = found.substr(0, kLongest);
}
// {"handle": N}
void take_handle(element value, int64_t& handle) {
  element of;
  if (value["handle"].get(of) == simdjson::SUCCESS) take(of, handle);
}

// What a writer that was killed would have had to add: the brackets that are open behind the last record that
// is whole. Empty: none is.
std::string closed(std::string_view text) {
  constexpr size_t kDepthOfRecords = 6;  // brackets around the fields of a record
  std::string open, open_behind;
  size_t behind = 0;
  bool is_in_text = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_in_text) {
      at += c == '\\';
      is_in_text = c != '"';
    } else if (c == '"') {
      is_in_text = true;
    } else if (c == '{' || c == '[') {
      open += c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (open.empty() || open.back() != c) break;
      open.pop_back();
      if (open.size() >= kDepthOfRecords) continue;
      behind = at + 1;
      open_behind = open;
    }
  }
  if (behind == 0) return {};
  std::string whole(text.substr(0, behind));
  whole.append(open_behind.rbegin(), open_behind.rend());
  return whole;
}

struct Row {
  int64_t start_ns = 0, end_ns = 0, agent = -1, from = -1, queue = 0, kernel = 0;
};
// One process as the file has it.
struct Session {
  Process process;
  std::unordered_map<int64_t, std::string> symbols;
  std::vector<Row> kernels, copies;
  uint64_t left_out = 0;
};

void read_metadata(element value, Process& process) {
  each_field(value, [&](std::string_view key, element of) {
    if (key == "pid") take(of, process.pid);
    if (key == "command") {
      each_element(of, [&](element part) {
        std::string word;
        take(part, word);
        process.command += (process.command.empty() ? "" : " ") + word;
      });
    }
    if (key != "node") return;
    each_field(of, [&](std::string_view what, element text) {
      if (what == "hostname") take(text, process.host);
      if (what == "machine_id") take(text, process.machine);
    });
  });
}

void read_agent(element value, Session& session) {
  constexpr int64_t kGpu = 2;
  constexpr size_t kMostAgents = 1 << 12;
  int64_t type = 0, node = -1;
  Process::Gpu gpu;
  std::string name;
  each_field(value, [&](std::string_view key, element of) {
    if (key == "id") take_handle(of, gpu.number);
    if (key == "type") take(of, type);
    if (key == "node_id") take(of, node);
    if (key == "product_name") take(of, gpu.model);
    if (key == "name") take(of, name);
  });
  if (gpu.model.empty()) gpu.model = name;
  if (node >= 0) gpu.physical = std::to_string(node);
  if (type == kGpu && session.process.gpus.size() < kMostAgents) session.process.gpus.push_back(gpu);
}

void read_symbol(element value, Session& session) {
  int64_t id = -1;
  std::string formatted, name;
  each_field(value, [&](std::string_view key, element of) {
    if (key == "kernel_id") take(of, id);
    if (key == "formatted_kernel_name") take(of, formatted);
    if (key == "kernel_name") take(of, name);
  });
  if (session.symbols.size() < kMostTexts) session.symbols[id] = formatted.empty() ? name : formatted;
}

void read_row(element value, Session& session, std::vector<Row>& rows) {
  Row row;
  each_field(value, [&](std::string_view key, element of) {
    if (key == "start_timestamp") take(of, row.start_ns);
    if (key == "end_timestamp") take(of, row.end_ns);
    if (key == "dst_agent_id") take_handle(of, row.agent);
    if (key == "src_agent_id") take_handle(of, row.from);
    if (key != "dispatch_info") return;
    each_field(of, [&](std::string_view what, element info) {
      if (what == "agent_id") take_handle(info, row.agent);
      if (what == "queue_id") take_handle(info, row.queue);
      if (what == "kernel_id") take(info, row.kernel);
    });
  });
  Process& process = session.process;
  if (is_time(row.start_ns, row.end_ns)) {
    process.first_ns = process.first_ns == 0 ? row.start_ns : std::min(process.first_ns, row.start_ns);
    process.last_ns = std::max(process.last_ns, row.end_ns);
  }
  if (++process.rows > kMostWork)
    ++session.left_out;
  else
    rows.push_back(row);
}

void read_session(element value, Session& session) {
  each_field(value, [&](std::string_view key, element of) {
    if (key == "metadata") read_metadata(of, session.process);
    if (key == "agents") each_element(of, [&](element agent) { read_agent(agent, session); });
    if (key == "kernel_symbols") each_element(of, [&](element symbol) { read_symbol(symbol, session); });
    if (key != "buffer_records") return;
    each_field(of, [&](std::string_view kind, element rows) {
      if (kind != "kernel_dispatch" && kind != "memory_copy") return;
      std::vector<Row>& to = kind == "memory_copy" ? session.copies : session.kernels;
      each_element(rows, [&](element row) { read_row(row, session, to); });
    });
  });
}

class Json : public Schema {
 public:
  explicit Json(std::deque<Session> sessions, std::string damage)
      : sessions_(std::move(sessions)), damage_(std::move(damage)) {}

  Result<std::vector<Process>> processes(std::vector<Loss>& losses) override {
    if (!damage_.empty()) losses.push_back({"cut_file", 1, damage_});
    std::vector<Process> processes;
    for (size_t i = 0; i < sessions_.size(); ++i) {
      if (sessions_[i].process.last_ns == 0) continue;
      processes.push_back(sessions_[i].process);
      processes.back().process_id = static_cast<int64_t>(i);
    }
    return processes;
  }

  Contents read(const Process& process, SharedTexts&, model::StringPool& strings) override {
    const Session& session = sessions_[static_cast<size_t>(process.process_id)];
    Contents out;
    out.left_out = session.left_out;
    std::unordered_map<int64_t, model::StringId> names;
    for (const Row& row : session.kernels) {
      const auto [name, is_new] = names.try_emplace(row.kernel);
      const auto symbol = session.symbols.find(row.kernel);
      if (is_new && symbol != session.symbols.end()) name->second = strings.intern(symbol->second);
      add(row, row.agent, name->second, model::KernelKind::kCompute, out);
    }
    const auto is_gpu = [&](int64_t agent) {
      return std::any_of(process.gpus.begin(), process.gpus.end(),
                         [&](const Process::Gpu& gpu) { return gpu.number == agent; });
    };
    for (const Row& row : session.copies) {
      const bool is_to_gpu = is_gpu(row.agent), is_from_gpu = is_gpu(row.from);
      const model::StringId name = strings.intern(is_to_gpu && is_from_gpu ? "MEMORY_COPY_DEVICE_TO_DEVICE"
                                                  : is_to_gpu              ? "MEMORY_COPY_HOST_TO_DEVICE"
                                                  : is_from_gpu            ? "MEMORY_COPY_DEVICE_TO_HOST"
                                                                           : "MEMORY_COPY_HOST_TO_HOST");
      add(row, is_to_gpu || !is_from_gpu ? row.agent : row.from, name, model::KernelKind::kCopy, out);
    }
    return out;
  }

 private:
  static void add(const Row& row, int64_t gpu, model::StringId name, model::KernelKind kind, Contents& out) {
    if (!is_time(row.start_ns, row.end_ns)) {
      ++out.bad;
      return;
    }
    out.work.push_back({.start_ns = row.start_ns,
                        .end_ns = row.end_ns,
                        .gpu = gpu,
                        .queue = static_cast<uint64_t>(row.queue),
                        .name = name,
                        .kind = kind});
  }

  const std::deque<Session> sessions_;
  const std::string damage_;
};

}  // namespace

Result<std::unique_ptr<Schema>> json_schema(const std::string& path) {
  simdjson::padded_string text;
  if (simdjson::padded_string::load(path).get(text) != simdjson::SUCCESS)
    return Error{ErrorCode::kIo, "cannot be read", path};
  simdjson::dom::parser parser;
  element root;
  auto error = parser.parse(text).get(root);
  bool is_cut = false;
  if (error != simdjson::SUCCESS) {
    const std::string whole = closed(text);
    is_cut = !whole.empty();
    if (is_cut) error = parser.parse(whole).get(root);
  }
  if (error != simdjson::SUCCESS)
    return Error{ErrorCode::kInvalidInput, std::string("is no JSON: ") + simdjson::error_message(error),
                 path};
  constexpr size_t kMostSessions = 1 << 12;
  std::deque<Session> sessions;
  each_field(root, [&](std::string_view key, element list) {
    if (key != "rocprofiler-sdk-tool") return;
    each_element(list, [&](element session) {
      if (sessions.size() < kMostSessions) read_session(session, sessions.emplace_back());
    });
  });
  return std::unique_ptr<Schema>(std::make_unique<Json>(
      std::move(sessions), is_cut ? "the JSON breaks off; read as far as it goes" : ""));
}

}  // namespace lockstep::readers::rocpd
