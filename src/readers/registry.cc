// SPDX-License-Identifier: Apache-2.0
// Decides which reader a file is for, from its first bytes: names are whatever people gave, and a list of
// suffixes would turn a renamed file into no file. Only our own *.lks count by name, as a torn one may lack
// even its first bytes. Formats are asked in the order of readers.def, and the first that knows the bytes has
// the file; text that no format knows at its begin is looked at further down, since programs print before
// they print what we read. In a directory, files that nobody knows are passed over silently unless they are
// called like known ones beside them: those are a loss.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "base/input_file.h"
#include "base/lines/utf16.h"
#include "base/parallel.h"
#include "model/limits.h"
#include "readers/reader.h"

namespace lockstep::readers {

#define READER(name)           \
  namespace name {             \
  extern const Format kFormat; \
  }
#define STATEMENTS(name) READER(name)
#include "readers/readers.def"
#undef STATEMENTS
#undef READER

namespace {

namespace fs = std::filesystem;

constexpr const Format* kFormats[] = {
#define READER(name) &name::kFormat,
#define STATEMENTS(name) READER(name)
#include "readers/readers.def"
#undef STATEMENTS
#undef READER
};

// A source whose files were found by `sort`: what could not be read is a loss, and files that were unpacked
// have the names that the user knows.
class SortedSource : public model::TraceSource {
 public:
  SortedSource(std::unique_ptr<model::TraceSource> source, std::shared_ptr<Unpacker> unpacker,
               std::vector<Error> troubles)
      : source_(std::move(source)), unpacker_(std::move(unpacker)), troubles_(std::move(troubles)) {}
  size_t processes() const override { return source_->processes(); }
  Result<void> load(size_t i, model::Trace& trace) override {
    Result<void> loaded = source_->load(i, trace);
    // Behind every reader, so that none of them and no analysis needs limits of its own.
    const uint64_t impossible = model::drop_impossible(trace);
    trace.lose(trace.processes.size() > 0 ? 0 : model::kNoRow, "read", "bad_value", impossible,
               "impossible ranks and sizes of communicators: " + source_->name());
    rename(trace);
    if (loaded) return loaded;
    Error error = loaded.error();
    error.where = unpacker_->shown(error.where);
    return error;
  }
  void run_losses(model::Trace& trace) override {
    source_->run_losses(trace);
    rename(trace);
    for (const Error& error : troubles_)
      trace.lose(model::kNoRow, "read", "unreadable_file", 1, error.message());
  }
  std::string name() const override { return unpacker_->shown(source_->name()); }

 private:
  void rename(model::Trace& trace) const {
    for (size_t i = 0; i < trace.losses.size(); ++i) {
      const model::StringId detail = trace.losses.detail[i];
      trace.losses.detail[i] = trace.strings.intern(unpacker_->shown(std::string(trace.strings[detail])));
    }
  }

  std::unique_ptr<model::TraceSource> source_;
  std::shared_ptr<Unpacker> unpacker_;
  std::vector<Error> troubles_;
};

// In the order of names, which is the same on every host.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, fs::directory_options::skip_permission_denied, ignored), end;
       !ignored && at != end; at.increment(ignored)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// What `lockstep-nccl-host` replays into the plugin, not what the plugin records.
bool is_tape(std::span<const std::byte> bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
      .starts_with(R"({"call":"tape",)");
}

// The end of an error about what is of no format.
std::string hint(bool are_tapes) {
  return are_tapes
             ? "it holds tapes of NCCL's calls; replay them, from the sources: lockstep trace -o trace.db "
               "tools/replay FOLDER"
             : "capture one with: lockstep trace -o trace.db COMMAND";
}

bool is_process_file(const fs::path& path) { return path.extension() == ".lks"; }

const Format* format_of(std::span<const std::byte> bytes, bool deep) {
  for (const Format* format : kFormats) {
    if ((!deep || format->sniff_deep) && format->sniff(bytes)) return format;
  }
  return nullptr;
}

// Whether somebody may have printed it. Zero bytes are what two writers of one file leave; of UTF-16 any byte
// may be.
bool may_be_text(std::span<const std::byte> bytes) {
  if (Utf16::is({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) return true;
  return std::none_of(bytes.begin(), bytes.end(), [](std::byte b) {
    const auto c = static_cast<unsigned char>(b);
    return (c < 0x20 && c != 0 && (c < '\b' || c > '\r') && c != 0x1b) || c == 0x7f;
  });
}

// Of bytes that are as many as there are, up to kDeepSniffBytes.
const Format* format_of(std::span<const std::byte> bytes) {
  const auto first = bytes.first(std::min(bytes.size(), kSniffBytes));
  const Format* format = format_of(first, false);
  return format == nullptr && may_be_text(first) ? format_of(bytes, true) : format;
}

// A file that begins so may be of one of the formats that have to look into it.
bool has_to_be_opened(std::span<const std::byte> bytes) {
  const auto first = bytes.first(std::min(bytes.size(), kSniffBytes));
  return std::any_of(std::begin(kFormats), std::end(kFormats), [&](const Format* format) {
    return format->may_be != nullptr && format->may_be(first);
  });
}

const Format* format_of_opened(const std::string& path, std::span<const std::byte> first) {
  for (const Format* format : kFormats) {
    if (format->may_be != nullptr && format->may_be(first) && format->sniff_file(path)) return format;
  }
  return nullptr;
}

// The format of a file that only counts where a user names it.
const Format* format_of_named(std::span<const std::byte> bytes) {
  const auto first = bytes.first(std::min(bytes.size(), kSniffBytes));
  for (const Format* format : kFormats) {
    if (format->sniff_named != nullptr && format->sniff_named(first)) return format;
  }
  return nullptr;
}

// The format that a user may mean with a file of none.
const Format* format_meant(std::span<const std::byte> first) {
  for (const Format* format : kFormats) {
    if (format->may_be_meant != nullptr && format->may_be_meant(first)) return format;
  }
  return nullptr;
}

struct Sniffed {
  const Format* format = nullptr;
  std::vector<const Format*> also = {};  // formats of statements: what a program printed may hold several
  bool packed = false;
  bool tape = false;
};

std::vector<const Format*> other_statements(const Format* format, std::span<const std::byte> bytes) {
  std::vector<const Format*> others;
  for (const Format* other : kFormats) {
    if (other != format && other->open == nullptr && other->sniff(bytes)) others.push_back(other);
  }
  return others;
}

// From the cheapest and surest question to the last resort: first bytes, what counts only where a user names
// it, packed files, files that have to be opened, text further down. Once known, only statements are looked
// at further: a log may hold stacks as well.
Result<Sniffed> sniff(const std::string& path, bool named) {
  LOCKSTEP_ASSIGN(InputFile file, InputFile::open(path));
  std::vector<std::byte> buffer(kSniffBytes);
  std::span<const std::byte> first(buffer.data(), file.read_at(0, buffer));
  Sniffed found;
  found.format = format_of(first, false);
  if (found.format == nullptr && named) found.format = format_of_named(first);
  found.packed = found.format == nullptr && Unpacker::is_packed(first);
  found.tape = is_tape(first);
  if (found.format == nullptr) found.format = format_of_opened(path, first);
  const bool is_statement = found.format != nullptr && found.format->open == nullptr;
  if ((found.format != nullptr && !is_statement) || found.packed || !may_be_text(first)) return found;
  buffer.resize(kDeepSniffBytes);
  first = {buffer.data(), file.read_at(0, buffer)};
  if (found.format == nullptr) found.format = format_of(first, true);
  if (found.format != nullptr && found.format->open == nullptr)
    found.also = other_statements(found.format, first);
  if (found.format == nullptr && named)
    found.format = format_meant(first.first(std::min(first.size(), kSniffBytes)));
  return found;
}

bool has_no_bytes(const fs::path& path) {
  std::error_code error;
  return fs::file_size(path, error) == 0 && !error;
}

// What a file's name has in common with those of other ranks beside it: "node1-pid4711.log" is
// "node#-pid#.log"; and, as hosts may have any names, "-pid#.log".
std::vector<std::string> shapes_of(const fs::path& path) {
  std::string shape;
  for (const char c : path.filename().string()) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || !shape.ends_with('#')) shape += is_digit ? '#' : c;
  }
  const std::string folder = path.parent_path().string() + '/';
  std::vector<std::string> shapes = {folder + shape};
  const std::string tail = shape.substr(std::min(shape.find_last_of("-_"), shape.size()));
  const std::string word = tail.substr(0, tail.find('.'));
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (std::any_of(word.begin(), word.end(), is_letter)) shapes.push_back(folder + '*' + tail);
  return shapes;
}

Error unknown(const std::string& path, bool is_a_tape) {
  std::string known = "trace.db";
  for (const Format* format : kFormats) known += ", " + std::string(format->summary);
  return {ErrorCode::kInvalidInput, "not a file of a known format (" + known + "); " + hint(is_a_tape), path};
}

class Sorter {
 public:
  explicit Sorter(std::shared_ptr<Unpacker> unpacker) : unpacker_(std::move(unpacker)) {}

  void add(const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return add_named(path);
    const fs::directory_iterator listed(path, error);
    if (error)
      return troubles_.push_back({ErrorCode::kPermission, "cannot be listed: " + error.message(), path});
    const size_t before = found_;
    has_tapes_ = false;
    unpack_all(add_directory(path), false);
    if (found_ > before) return;
    troubles_.push_back(
        {ErrorCode::kNotFound,
         "the directory holds no process files (*.lks) and no other readable file; " + hint(has_tapes_),
         path});
  }

  Inputs take() {
    unpack_all(named_packed_, true);
    place_empty();
    find_disfigured();
    Inputs inputs;
    for (const Format* format : kFormats) {
      if (auto at = files_.find(format); at != files_.end()) inputs.formats.push_back(std::move(at->second));
    }
    inputs.troubles = std::move(troubles_);
    inputs.unpacker = std::move(unpacker_);
    return inputs;
  }

 private:
  struct Empty {
    std::string path;
    bool named = false;
  };
  // What is called like files with operations beside it, and is of no format, was one of them.
  void find_disfigured() {
    if (unknown_.empty()) return;
    std::set<std::string> known;
    for (const auto& [format, files] : files_) {
      for (const std::string& file : files.files) {
        if (format->open != nullptr) known.insert(shapes_of(file).front());
      }
    }
    for (const std::string& path : unknown_) {
      if (known.contains(shapes_of(path).front()))
        troubles_.push_back(
            {ErrorCode::kInvalidInput, "is named like the files beside it, but is not one of them", path});
    }
  }

  // A job that ends early leaves files that nothing was written into yet: those that are called like files of
  // a format beside them are that format's to report.
  void place_empty() {
    if (empty_.empty()) return;
    std::map<std::string, const Format*> known;
    for (const auto& [format, files] : files_) {
      for (const std::string& file : files.files) {
        for (std::string& shape : shapes_of(file)) known.try_emplace(std::move(shape), format);
      }
    }
    for (Empty& empty : empty_) {
      const Format* format = nullptr;
      for (const std::string& shape : shapes_of(empty.path)) {
        const auto at = known.find(shape);
        if (format == nullptr && at != known.end()) format = at->second;
      }
      if (format != nullptr) {
        keep(format, std::move(empty.path), empty.named);
      } else if (empty.named) {
        troubles_.push_back({ErrorCode::kInvalidInput, "is empty", empty.path});
      }
    }
  }

  void keep(const Format* format, std::string file, bool named) {
    FormatFiles& files = files_[format];
    files.format = format;
    files.named = files.named || named;
    files.files.push_back(std::move(file));
    ++found_;
  }

  void keep(const Sniffed& found, const std::string& file, bool named) {
    keep(found.format, file, named);
    for (const Format* other : found.also) {
      keep(other, file, named);
      files_[other].beside.insert(file);
    }
  }

  void add_named(const std::string& path) {
    auto found = sniff(path, true);
    if (!found) {
      troubles_.push_back(found.error());
    } else if (found->format != nullptr) {
      keep(*found, path, true);
    } else if (found->packed) {
      named_packed_.push_back(path);
    } else if (is_process_file(path)) {
      // A torn process file may lack even its first bytes: the native reader says what is wrong with it.
      keep(&native::kFormat, path, true);
    } else if (has_no_bytes(path)) {
      empty_.push_back({path, true});
    } else {
      troubles_.push_back(unknown(path, found->tape));
    }
  }

  // Other tools' files have no name in common, and lie among logs and checkpoints: those that a format knows.
  // Returns those that are packed.
  std::vector<std::string> add_directory(const std::string& path) {
    std::vector<std::string> packed;
    std::error_code ignored;
    for (const fs::path& entry : entries_of(path)) {
      if (fs::is_directory(entry, ignored)) {
        for (const fs::path& deeper : entries_of(entry)) {
          if (is_process_file(deeper) && !fs::is_directory(deeper, ignored))
            keep(&native::kFormat, deeper, false);
        }
      } else if (is_process_file(entry)) {
        keep(&native::kFormat, entry, false);
      } else if (fs::is_regular_file(entry, ignored)) {
        auto found = sniff(entry, false);
        if (found && found->format != nullptr) keep(*found, entry, false);
        if (found && found->packed) packed.push_back(entry);
        if (found && found->tape) has_tapes_ = true;
        // A file that cannot be opened is no loss here: directories hold files of others.
        const bool is_empty = has_no_bytes(entry);
        if (found && is_empty) empty_.push_back({entry, false});
        if (found && !is_empty && found->format == nullptr && !found->packed) unknown_.push_back(entry);
      }
    }
    return packed;
  }

  // What was named is unpacked with all that it holds; what lies in a directory may be anybody's archive of
  // anything.
  void unpack_all(const std::vector<std::string>& paths, bool named) {
    struct Outcome {
      std::vector<std::string> files;
      std::vector<Error> troubles;
      bool has_tapes = false;
    };
    // Kept apart by path and taken in order below: threads do not decide the order of files.
    std::vector<Outcome> outcomes(paths.size());
    for_each_parallel(paths.size(), parallel_threads(), [&](size_t i) {
      bool has_tapes = false;
      const auto wants = [named, &has_tapes](const std::string& name, std::span<const std::byte> bytes) {
        has_tapes = has_tapes || is_tape(bytes);
        return is_process_file(name) || format_of(bytes) != nullptr || has_to_be_opened(bytes) ||
               (named && format_of_named(bytes) != nullptr);
      };
      auto unpacked = unpacker_->unpack(paths[i], wants, named);
      if (!unpacked) {
        if (named) outcomes[i].troubles.push_back(unpacked.error());
        return;
      }
      outcomes[i] = {std::move(unpacked->files), std::move(unpacked->troubles), has_tapes};
      if (named && outcomes[i].files.empty() && outcomes[i].troubles.empty()) {
        outcomes[i].troubles.push_back(
            {ErrorCode::kInvalidInput, "holds no file of a known format; " + hint(has_tapes), paths[i]});
      }
    });
    for (Outcome& outcome : outcomes) {
      has_tapes_ = has_tapes_ || outcome.has_tapes;
      for (std::string& file : outcome.files) {
        auto found = sniff(file, named);
        if (found && found->format != nullptr) {
          keep(*found, file, named);
        } else if (is_process_file(file)) {
          keep(&native::kFormat, std::move(file), named);
        } else if (named) {
          troubles_.push_back(unknown(unpacker_->shown(file), found && found->tape));
        }
      }
      for (Error& error : outcome.troubles) {
        error.where = unpacker_->shown(error.where);
        troubles_.push_back(std::move(error));
      }
    }
  }

  std::map<const Format*, FormatFiles> files_;
  std::vector<std::string> named_packed_;
  std::vector<Empty> empty_;
  std::vector<std::string> unknown_;  // in directories
  std::vector<Error> troubles_;
  std::shared_ptr<Unpacker> unpacker_;
  size_t found_ = 0;
  bool has_tapes_ = false;  // what was looked into last
};

Error several_formats(const Inputs& inputs, const FormatFiles& a, const FormatFiles& b) {
  return {ErrorCode::kUnsupported,
          "has another format (" + std::string(b.format->name) + ") than others (" +
              std::string(a.format->name) +
              "), and cannot be read together with them; `lockstep diagnose` takes any mix",
          inputs.unpacker->shown(b.files.front())};
}

}  // namespace

std::span<const Format* const> all() { return kFormats; }

Result<const Format*> detect(const std::string& path) {
  LOCKSTEP_ASSIGN(const Sniffed found, sniff(path, false));
  return found.format;
}

Result<Inputs> sort(const std::vector<std::string>& paths, std::shared_ptr<Unpacker> unpacker) {
  if (paths.empty()) return usage_error("no input files; " + hint(false));
  Sorter sorter(std::move(unpacker));
  for (const std::string& path : paths) sorter.add(path);
  Inputs inputs = sorter.take();
  // Each path that gave no file has left a trouble.
  if (inputs.formats.empty()) return inputs.troubles.front();
  return inputs;
}

Result<std::unique_ptr<model::TraceSource>> open(const Inputs& inputs, const FormatFiles& files) {
  auto source = files.format->open(files.files);
  if (!source) {
    Error error = source.error();
    error.where = inputs.unpacker->shown(error.where);
    return error;
  }
  return std::unique_ptr<model::TraceSource>(
      std::make_unique<SortedSource>(*std::move(source), inputs.unpacker, inputs.troubles));
}

Result<const FormatFiles*> one_format(const Inputs& inputs) {
  // Native files come first in readers.def, so that the others see that there are some.
  const FormatFiles* chosen = nullptr;
  for (const FormatFiles& files : inputs.formats) {
    const bool beside = chosen != nullptr && chosen->format == &native::kFormat && !files.named;
    if (beside || (files.format->open == nullptr && !files.named)) continue;
    if (chosen != nullptr) return several_formats(inputs, *chosen, files);
    chosen = &files;
  }
  if (chosen == nullptr) chosen = &inputs.formats.front();
  if (chosen->format->open != nullptr) return chosen;
  return Error{ErrorCode::kUnsupported,
               "holds no operations, as a file of the format " + std::string(chosen->format->name) +
                   "; `lockstep diagnose` reads it",
               inputs.unpacker->shown(chosen->files.front())};
}

Result<std::unique_ptr<model::TraceSource>> open(const std::vector<std::string>& paths) {
  LOCKSTEP_ASSIGN(const Inputs inputs, sort(paths));
  LOCKSTEP_ASSIGN(const FormatFiles* files, one_format(inputs));
  return open(inputs, *files);
}

}  // namespace lockstep::readers
