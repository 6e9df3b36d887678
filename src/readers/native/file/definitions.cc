// SPDX-License-Identifier: Apache-2.0
// Reads what records name by number. Every number is hostile: a communicator's may be as large as a word, so
// it is bounded by how many definitions the meta chunks could hold, and a repeated one is refused rather than
// taken for the first.
#include "readers/native/file/definitions.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "format/records.h"
#include "model/names/chained_plugin.h"
#include "model/names/kernel_name.h"
#include "model/torch/comms_id.h"
#include "readers/common/demangle.h"
#include "readers/native/file/hex.h"
#include "readers/native/file/tick_clock.h"

namespace lockstep::readers::native {

using format::Def;
using format::Purpose;

std::vector<format::ClockAnchor> read_anchors(const FileView& view, ReadLosses& losses) {
  std::vector<format::ClockAnchor> anchors{view.header().first_anchor};
  for_each_definition(view, Purpose::kMeta, 0, losses, [&](const Definition& definition) {
    if (definition.head().kind == static_cast<uint16_t>(Def::kAnchor)) {
      anchors.push_back(definition.as<format::AnchorDef>().anchor);
    }
  });
  return anchors;
}

void raise_mode(format::Mode mode, uint32_t process, model::Trace& trace) {
  uint8_t& most = trace.processes.mode[process];
  if (format::mode_rank(mode) > format::mode_rank(static_cast<format::Mode>(most)))
    most = static_cast<uint8_t>(mode);
}

class CommReader {
 public:
  CommReader(const FileView& view, TickClock& clock, uint32_t process, model::Trace& trace,
             ReadLosses& losses)
      : view_(view),
        clock_(clock),
        process_(process),
        trace_(trace),
        losses_(losses),
        max_comms_(view.chunks(Purpose::kMeta, 0).size() * (format::kChunkBytes / sizeof(format::CommDef))),
        other_nccl_(trace.strings[trace.processes.other_nccl[process]]) {}

  CommRows read() {
    for_each_definition(view_, Purpose::kMeta, 0, losses_, [&](const Definition& d) { visit(d); });
    // Texts that grow piece by piece are interned once: all their prefixes would be quadratic.
    for (const auto& [row, members] : members_) trace_.comms.members[row] = trace_.strings.intern(members);
    trace_.processes.other_nccl[process_] = trace_.strings.intern(other_nccl_);
    if (chain_missed_ != 0)
      losses_.add("chain_missed", chain_missed_, [] {
        return "events of which the chained profiler plugin saw only a part, or not the end";
      });
    // Libraries of one process are steered together.
    if (trace_.processes.modes[process_] == 0)
      trace_.processes.modes[process_] = trace_.strings.intern(modes_);
    return std::move(rows_);
  }

 private:
  void visit(const Definition& definition) {
    switch (static_cast<Def>(definition.head().kind)) {
      case Def::kComm:
        return add(definition.as<format::CommDef>());
      case Def::kCommEnd:
        if (uint32_t row = find(definition.head().id); row != model::kNoRow) {
          trace_.comms.end_ns[row] = clock_.to_ns(definition.head().ticks);
        }
        return;
      case Def::kCommIdentity:
        return identify(definition.as<format::CommIdentityDef>());
      case Def::kGroup:
        return take_group(definition.as<format::GroupDef>());
      case Def::kGroupRanks:
        return add_members(definition.as<format::GroupRanksDef>());
      case Def::kMode:
        return add_mode(definition.as<format::ModeDef>());
      case Def::kNote:
        return add_note(definition.as<format::NoteDef>(), definition.head().ticks);
      default:
        return;
    }
  }

  void add(const format::CommDef& def) {
    // The row is kept even if its number is of no use: the process did join the communicator.
    uint32_t row =
        trace_.comms.append({.process = process_,
                             .index_in_process = static_cast<uint32_t>(trace_.comms.size()),
                             .comm_id = def.comm_id,
                             .name = trace_.strings.intern(field_text(def.name)),
                             .rank = def.rank,
                             .ranks = def.ranks,
                             .nodes = def.nodes,
                             .api_version = static_cast<int32_t>(def.api_version),
                             .device = def.device,
                             .gpu = -1,
                             .pci = trace_.strings.intern(field_text(def.pci)),
                             .uuid = trace_.strings.intern(uuid_text(def.uuid)),
                             .init_ns = clock_.to_ns(def.head.ticks),
                             .end_ns = 0,
                             .context = format::make_context(view_.header().process_tag, def.head.id)});
    // The writer numbers them from 0, so a number beyond what the meta chunks can hold is damage.
    if (def.head.id >= max_comms_ || rows_.row(def.head.id) != model::kNoRow) {
      losses_.add("bad_comm_number", 1,
                  [&] { return "communicators with an impossible or repeated number: " + view_.path(); });
      return;
    }
    if (def.head.id >= rows_.rows_.size()) rows_.rows_.resize(size_t{def.head.id} + 1, model::kNoRow);
    rows_.rows_[def.head.id] = row;
  }

  // Plugin interfaces before v4 give a communicator's hash and name in its first event.
  void identify(const format::CommIdentityDef& def) {
    uint32_t row = find(def.head.id);
    if (row == model::kNoRow) return;
    if (def.comm_id != 0) trace_.comms.comm_id[row] = def.comm_id;
    if (std::string name = field_text(def.name); !name.empty())
      trace_.comms.name[row] = trace_.strings.intern(name);
  }

  void take_group(const format::GroupDef& def) {
    uint32_t row = find(def.head.id);
    if (row == model::kNoRow) return;
    model::CommTable& comms = trace_.comms;
    const std::string description = field_text(def.description), name = field_text(def.name);
    const model::ParsedGroup group =
        // Said in one text, description and name are told apart by PyTorch's form; said apart, nothing is
        // guessed.
        def.is_apart == 0 ? model::parse_group(name) : model::ParsedGroup{name, description};
    comms.group_name[row] = trace_.strings.intern(group.name);
    comms.group_description[row] = trace_.strings.intern(group.description);
    comms.rank_start[row] = def.start;
    comms.rank_stride[row] = def.stride;
    if (comms.rank[row] < 0) comms.rank[row] = def.rank;
  }

  void add_members(const format::GroupRanksDef& def) {
    uint32_t row = find(def.head.id);
    if (row == model::kNoRow) return;
    constexpr auto kMost = static_cast<uint32_t>(std::extent_v<decltype(def.ranks)>);
    std::string& members = members_[row];
    for (uint32_t i = 0; i < std::min(def.n, kMost); ++i) {
      if (!members.empty()) members += ',';
      members += std::to_string(def.ranks[i]);
    }
  }

  void add_note(const format::NoteDef& def, uint64_t ticks) {
    // Of notes that may come again, the GPU's model keeps the first, NCCL's library the last, and missed
    // events the largest number.
    const std::string key = field_text(def.key), value = field_text(def.value);
    model::StringId& model = trace_.processes.gpu_model[process_];
    if (model == 0 && key == format::kNoteGpuModel) model = trace_.strings.intern(value);
    if (key == format::kNoteNcclLibrary) add_nccl_library(value);
    if (key == format::kNoteOtherNccl) add_other_nccl(value);
    // What is asked for begins with "kernels"; anything else says why nothing is.
    if (key == format::kNoteGpuRecords && !value.starts_with("kernels"))
      losses_.add("gpu_absent", 1, [&] { return "GPU times of kernels were not available: " + value; });
    if (key == format::kNoteChained) add_chained(value, ticks);
    if (key == format::kNoteChainMissed)
      chain_missed_ = std::max<uint64_t>(chain_missed_, std::strtoull(value.c_str(), nullptr, 10));
  }

  // "BUILDID VERSION PATH"; a build id of "-" is none.
  static std::pair<std::string, std::string> id_and_path(const std::string& value) {
    const size_t id = value.find(' '), version = id == std::string::npos ? id : value.find(' ', id + 1);
    if (version == std::string::npos) return {};
    return {value[0] == '-' ? std::string() : value.substr(0, id), value.substr(version + 1)};
  }
  void add_nccl_library(const std::string& value) {
    const auto [id, path] = id_and_path(value);
    trace_.processes.nccl_library[process_] = trace_.strings.intern(path);
    trace_.processes.nccl_build_id[process_] = trace_.strings.intern(id);
  }
  void add_other_nccl(const std::string& value) {
    const auto [id, path] = id_and_path(value);
    // Texts grow by what a file repeats: they stop at a bound.
    if (path.empty() || other_nccl_.size() > kMostModesText) return;
    if (!other_nccl_.empty()) other_nccl_ += '\n';
    other_nccl_ += (id.empty() ? "-" : id) + ' ' + path;
  }

  // Its callbacks are in the times of the process from then on.
  void add_chained(const std::string& value, uint64_t ticks) {
    constexpr std::string_view kNone = "none: ";
    if (value.starts_with(kNone)) {
      losses_.add("chain_absent", 1, [&] {
        return "the profiler plugin to be chained was not found: " + value.substr(kNone.size());
      });
      return;
    }
    const std::string mark = std::string(model::kChainedPluginMark) + value;
    trace_.marks.append({.process = process_,
                         .thread = model::kNoRow,
                         .name = trace_.strings.intern(mark),
                         .value = 0,
                         .is_step = 0,
                         .time_ns = clock_.to_ns(ticks)});
  }

  void add_mode(const format::ModeDef& def) {
    if (def.mode > static_cast<uint32_t>(format::Mode::kSample)) return;  // of a newer minor version
    const auto mode = static_cast<format::Mode>(def.mode);
    raise_mode(mode, process_, trace_);
    if (modes_.size() > kMostModesText) return;
    if (!modes_.empty()) modes_ += ", ";
    modes_ += format::mode_name(mode);
    if (mode == format::Mode::kSample)
      modes_ += "=" + std::to_string(def.keep) + "/" + std::to_string(def.of);
    modes_ += ' ' + std::to_string(clock_.to_ns(def.head.ticks));
  }

  uint32_t find(uint32_t index) {
    uint32_t row = rows_.row(index);
    if (row == model::kNoRow) {
      losses_.add("unknown_comm_definition", 1,
                  [&] { return "definitions of a communicator that is not in the file: " + view_.path(); });
    }
    return row;
  }

  const FileView& view_;
  TickClock& clock_;
  uint32_t process_;
  model::Trace& trace_;
  ReadLosses& losses_;
  size_t max_comms_;
  CommRows rows_;
  std::map<uint32_t, std::string> members_;  // by row of comms
  static constexpr size_t kMostModesText = 64 << 10;
  std::string modes_, other_nccl_;  // the latter of all files of the process so far
  uint64_t chain_missed_ = 0;
};

CommRows read_comms(const FileView& view, TickClock& clock, uint32_t process, model::Trace& trace,
                    ReadLosses& losses) {
  return CommReader(view, clock, process, trace, losses).read();
}

LogDefinitions LogDefinitions::read(const FileView& view, uint16_t log, model::Trace& trace,
                                    ReadLosses& losses) {
  LogDefinitions found;
  model::StringPool& strings = trace.strings;
  // A name takes at least sizeof(NameDef), so the log's chunks bound how many numbers there can be.
  const size_t most_names =
      view.chunks(Purpose::kDefs, log).size() * (format::kChunkBytes / sizeof(format::NameDef));
  for_each_definition(view, Purpose::kDefs, log, losses, [&](const Definition& definition) {
    uint32_t id = definition.head().id;
    switch (static_cast<Def>(definition.head().kind)) {
      case Def::kLog: {
        auto def = definition.as<format::LogDef>();
        // A log has one of these; of a damaged file's several the last stands.
        std::copy_n(def.losses, format::kLossKinds, found.losses_.begin());
        return;
      }
      case Def::kThread: {
        auto def = definition.as<format::ThreadDef>();
        found.owners_.push_back({def.from_position, id, strings.intern(field_text(def.name)), def.pthread,
                                 definition.head().ticks});
        return;
      }
      case Def::kShape: {
        if (id == format::kNoShape || id >= format::kShapeUnknown) break;
        auto def = definition.as<format::ShapeDef>();
        if (id >= found.shapes_.size()) found.shapes_.resize(id + 1);
        found.shapes_[id] = {{.func = strings.intern(field_text(def.func)),
                              .datatype = strings.intern(field_text(def.datatype)),
                              .algo = strings.intern(field_text(def.algo)),
                              .proto = strings.intern(field_text(def.proto)),
                              .root = def.root},
                             model::kNoRow,
                             true};
        return;
      }
      case Def::kStream:
        if (id == 0 || id > UINT16_MAX) break;
        if (id >= found.streams_.size()) found.streams_.resize(id + 1);
        found.streams_[id] = definition.as<format::StreamDef>().stream;
        return;
      case Def::kKernelName:
        if (found.add_kernel_name(definition, most_names, trace)) return;
        break;
      case Def::kRangeName:
        if (found.add_range_name(definition, most_names, trace)) return;
        break;
      default:
        return;  // of a newer minor version
    }
    losses.add("bad_definition_number", 1,
               [&] { return "shapes, streams or names with an impossible number: " + view.path(); });
  });
  losses.add("short_kernel_name", found.short_names_, [&] {
    return "kernel names without templates and arguments, because there are so many: " + view.path();
  });
  // By position, in which records are walked; chunks of a ring may come in any order.
  std::stable_sort(found.owners_.begin(), found.owners_.end(),
                   [](const Owner& a, const Owner& b) { return a.from_position < b.from_position; });
  return found;
}

std::string_view name_of(const Definition& definition, size_t most_bytes) {
  constexpr size_t kHead = offsetof(format::NameDef, name);
  const size_t size = size_t{definition.units()} * format::kUnitBytes;
  const std::string_view name(reinterpret_cast<const char*>(definition.at()) + kHead,
                              std::min<size_t>(size > kHead ? size - kHead : 0, most_bytes - 1));
  return name.substr(0, name.find('\0'));
}

// The writer numbers them from 1, so a number beyond what the chunks can hold is damage. A demangled name may
// be many times as long as its symbol, so their bytes are bounded: beyond that, names lose templates and
// arguments.
bool LogDefinitions::add_kernel_name(const Definition& definition, size_t most_names, model::Trace& trace) {
  const uint32_t id = definition.head().id;
  if (id == 0 || id > most_names) return false;
  constexpr size_t kMostDemangledBytes = size_t{16} << 20;  // of a log
  const std::string_view symbol = name_of(definition, format::kMaxKernelNameBytes);
  const bool is_short = demangled_bytes_ >= kMostDemangledBytes && symbol.starts_with("_Z");
  const std::string name = is_short ? common::scoped_name(symbol) : common::demangled(symbol);
  demangled_bytes_ += name.size();
  short_names_ += is_short;
  if (id >= kernel_names_.size()) kernel_names_.resize(size_t{id} + 1);
  kernel_names_[id] = {trace.strings.intern(valid_utf8(name)),
                       model::work_of_kernel(name) != model::KernelWork::kNone, true};
  return true;
}

bool LogDefinitions::add_range_name(const Definition& definition, size_t most_names, model::Trace& trace) {
  const uint32_t id = definition.head().id;
  if (id == 0 || id > most_names) return false;
  if (id >= range_names_.size()) range_names_.resize(size_t{id} + 1, kNoName);
  range_names_[id] = trace.strings.intern(valid_utf8(name_of(definition, format::kMaxRangeNameBytes)));
  return true;
}

// Rows are shared over logs: two logs that define one shape name one row.
uint32_t LogDefinitions::add_shape_row(uint16_t number, model::Trace& trace, bool known) {
  if (!known) return trace.intern_shape({});
  Shape& shape = shapes_[number];
  shape.row = trace.intern_shape(shape.value);
  return shape.row;
}

model::StringId LogDefinitions::name(uint16_t number) const {
  return number < shapes_.size() ? shapes_[number].value.func : 0;
}

}  // namespace lockstep::readers::native
