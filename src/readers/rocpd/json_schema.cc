// SPDX-License-Identifier: Apache-2.0
// rocprofv3's JSON: one object a process, with agents, symbols of kernels, and records by kind. Read front to
// back, so that of a file that is cut all that lies before the cut is there.
#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "readers/rocpd/schema.h"

namespace lockstep::readers::rocpd {
namespace {

namespace od = simdjson::ondemand;

// Calls visit(key, value) until it is false, which says that the text is damaged; so does the result. A value
// that is no object has no fields.
template <class Visit>
bool each_field(od::value value, Visit&& visit) {
  od::object object;
  if (const auto error = value.get_object().get(object); error != simdjson::SUCCESS)
    return error == simdjson::INCORRECT_TYPE;
  for (simdjson::simdjson_result<od::field> next : object) {
    od::field field;
    std::string_view key;
    if (std::move(next).get(field) != simdjson::SUCCESS) return false;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS || !visit(key, field.value())) return false;
  }
  return true;
}
template <class Visit>
bool each_element(od::value value, Visit&& visit) {
  od::array array;
  if (const auto error = value.get_array().get(array); error != simdjson::SUCCESS)
    return error == simdjson::INCORRECT_TYPE;
  for (simdjson::simdjson_result<od::value> next : array) {
    od::value element;
    if (std::move(next).get(element) != simdjson::SUCCESS || !visit(element)) return false;
  }
  return true;
}

// Left as it is where the value is of another type. True: the text is not damaged.
bool take(od::value value, int64_t& number) {
  uint64_t unsigned_number = 0;
  const auto error = value.get_uint64().get(unsigned_number);
  if (error == simdjson::SUCCESS) number = static_cast<int64_t>(unsigned_number);
  return error == simdjson::SUCCESS || error == simdjson::INCORRECT_TYPE || error == simdjson::NUMBER_ERROR ||
         error == simdjson::NUMBER_OUT_OF_RANGE;
}
bool take(od::value value, std::string& text) {
  std::string_view found;
  const auto error = value.get_string().get(found);
  constexpr size_t kLongest = 4096;
  if (error == simdjson::SUCCESS) text = found.substr(0, kLongest);
  return error == simdjson::SUCCESS || error == simdjson::INCORRECT_TYPE;
}
// {"handle": N}
bool take_handle(od::value value, int64_t& handle) {
  return each_field(value,
                    [&](std::string_view key, od::value of) { return key != "handle" || take(of, handle); });
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

class JsonReader {
 public:
  // False: the file is damaged behind what `sessions` then holds.
  bool read(od::document& document, std::deque<Session>& sessions) {
    od::value root;
    if (document.get_value().get(root) != simdjson::SUCCESS) return false;
    return each_field(root, [&](std::string_view key, od::value list) {
      return key != "rocprofiler-sdk-tool" || each_element(list, [&](od::value session) {
               constexpr size_t kMostSessions = 1 << 12;
               if (sessions.size() == kMostSessions) return false;
               return read(session, sessions.emplace_back());
             });
    });
  }

 private:
  bool read(od::value value, Session& session) {
    return each_field(value, [&](std::string_view key, od::value of) {
      if (key == "metadata") return read_metadata(of, session.process);
      if (key == "agents")
        return each_element(of, [&](od::value agent) { return read_agent(agent, session); });
      if (key == "kernel_symbols")
        return each_element(of, [&](od::value symbol) { return read_symbol(symbol, session); });
      return key != "buffer_records" || each_field(of, [&](std::string_view kind, od::value rows) {
               if (kind != "kernel_dispatch" && kind != "memory_copy") return true;
               std::vector<Row>& to = kind == "memory_copy" ? session.copies : session.kernels;
               return each_element(rows, [&](od::value row) { return read_row(row, session, to); });
             });
    });
  }

  static bool read_metadata(od::value value, Process& process) {
    return each_field(value, [&](std::string_view key, od::value of) {
      if (key == "pid") return take(of, process.pid);
      if (key == "command") {
        std::string word;
        return each_element(of, [&](od::value part) {
          const bool is_good = take(part, word);
          process.command += (process.command.empty() ? "" : " ") + word;
          return is_good;
        });
      }
      return key != "node" || each_field(of, [&](std::string_view what, od::value text) {
               if (what == "hostname") return take(text, process.host);
               return what != "machine_id" || take(text, process.machine);
             });
    });
  }

  static bool read_agent(od::value value, Session& session) {
    constexpr int64_t kGpu = 2;
    constexpr size_t kMostAgents = 1 << 12;
    int64_t type = 0, node = -1;
    Process::Gpu gpu;
    const bool is_good = each_field(value, [&](std::string_view key, od::value of) {
      if (key == "id") return take_handle(of, gpu.number);
      if (key == "type") return take(of, type);
      if (key == "node_id") return take(of, node);
      if (key == "product_name") return take(of, gpu.model);
      if (key != "name" || !gpu.model.empty()) return true;
      return take(of, gpu.model);
    });
    if (node >= 0) gpu.physical = std::to_string(node);
    if (type == kGpu && session.process.gpus.size() < kMostAgents) session.process.gpus.push_back(gpu);
    return is_good;
  }

  static bool read_symbol(od::value value, Session& session) {
    int64_t id = -1;
    std::string formatted, name;
    const bool is_good = each_field(value, [&](std::string_view key, od::value of) {
      if (key == "kernel_id") return take(of, id);
      if (key == "formatted_kernel_name") return take(of, formatted);
      return key != "kernel_name" || take(of, name);
    });
    if (session.symbols.size() < kMostTexts) session.symbols[id] = formatted.empty() ? name : formatted;
    return is_good;
  }

  static bool read_row(od::value value, Session& session, std::vector<Row>& rows) {
    Row row;
    const bool is_good = each_field(value, [&](std::string_view key, od::value of) {
      if (key == "start_timestamp") return take(of, row.start_ns);
      if (key == "end_timestamp") return take(of, row.end_ns);
      if (key == "dst_agent_id") return take_handle(of, row.agent);
      if (key == "src_agent_id") return take_handle(of, row.from);
      return key != "dispatch_info" || each_field(of, [&](std::string_view what, od::value info) {
               if (what == "agent_id") return take_handle(info, row.agent);
               if (what == "queue_id") return take_handle(info, row.queue);
               return what != "kernel_id" || take(info, row.kernel);
             });
    });
    // A row that the cut goes through has not all of its fields.
    if (!is_good) return false;
    Process& process = session.process;
    if (is_time(row.start_ns, row.end_ns)) {
      process.first_ns = process.first_ns == 0 ? row.start_ns : std::min(process.first_ns, row.start_ns);
      process.last_ns = std::max(process.last_ns, row.end_ns);
    }
    if (++process.rows > kMostWork)
      ++session.left_out;
    else
      rows.push_back(row);
    return true;
  }
};

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
  od::parser parser;
  od::document document;
  if (const auto error = parser.iterate(text).get(document); error != simdjson::SUCCESS)
    return Error{ErrorCode::kInvalidInput, std::string("is no JSON: ") + simdjson::error_message(error),
                 path};
  std::deque<Session> sessions;
  const bool is_whole = JsonReader().read(document, sessions);
  return std::unique_ptr<Schema>(std::make_unique<Json>(
      std::move(sessions), is_whole ? "" : "the JSON breaks off; read as far as it goes"));
}

}  // namespace lockstep::readers::rocpd
