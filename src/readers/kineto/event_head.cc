// SPDX-License-Identifier: Apache-2.0
// Tells from a few keys whether an event is of a kind that is read, so that the others are passed over
// without being parsed. Categories and names are compared as they stand, escapes and all: those that are
// looked for have none.
#include <cstring>

#include "readers/kineto/event.h"

namespace lockstep::readers::kineto {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Walks the keys of an object whose borders are known. Strict where it must be to stay in step, and no more.
class Keys {
 public:
  explicit Keys(std::string_view object) : at_(object.data() + 1), end_(object.data() + object.size() - 1) {}

  // False: there are no more, or what follows is no key.
  bool next(std::string_view& key) {
    while (at_ < end_ && (is_blank(*at_) || *at_ == ',')) ++at_;
    if (at_ >= end_ || *at_ != '"' || !take_string(key)) return false;
    skip_blank();
    if (at_ >= end_ || *at_ != ':') return false;
    ++at_;
    skip_blank();
    return at_ < end_;
  }
  // The text of the value, without quotes; empty of an object or array, which is passed over.
  // Called only behind next(), so at_ is inside the object.
  bool value(std::string_view& text) {
    text = {};
    if (*at_ == '"') return take_string(text);
    if (*at_ == '{' || *at_ == '[') return skip_container();
    const char* const begin = at_;
    while (at_ < end_ && *at_ != ',' && !is_blank(*at_)) ++at_;
    text = {begin, static_cast<size_t>(at_ - begin)};
    return true;
  }

 private:
  void skip_blank() {
    while (at_ < end_ && is_blank(*at_)) ++at_;
  }
  bool take_string(std::string_view& text) {
    const char* const begin = ++at_;
    // An escape at the very end jumps over it; the next line sees that.
    while (at_ < end_ && *at_ != '"') at_ += *at_ == '\\' ? 2 : 1;
    if (at_ >= end_) return false;
    text = {begin, static_cast<size_t>(at_ - begin)};
    ++at_;
    return true;
  }
  bool skip_container() {
    size_t depth = 0;
    std::string_view text;
    while (at_ < end_) {
      if (*at_ == '"') {
        if (!take_string(text)) return false;
        continue;
      }
      if (*at_ == '{' || *at_ == '[') ++depth;
      if ((*at_ == '}' || *at_ == ']') && --depth == 0) {
        ++at_;
        return true;
      }
      ++at_;
    }
    return false;
  }

  const char* at_;
  const char* const end_;
};

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Categories as they are, and as files of 2021 spell them.
EventKind complete_event(std::string_view category, std::string_view name) {
  // By length first: most events of a trace are of other categories, and one comparison of a number passes
  // them over.
  switch (category.size()) {
    case 6:
      if (category == "cpu_op" && name == "record_param_comms") return EventKind::kComms;
      if (category == "kernel" || category == "Kernel") return EventKind::kKernel;
      if (category == "Memcpy" || category == "Memset") return EventKind::kCopy;
      break;
    case 7:
      if (category == "Runtime" && has(name, "Launch")) return EventKind::kLaunch;
      break;
    case 8:
      if (category == "Operator" && name == "record_param_comms") return EventKind::kComms;
      break;
    case 10:
      if (category == "gpu_memcpy" || category == "gpu_memset") return EventKind::kCopy;
      break;
    case 11:
      if (category == "cuda_driver" && has(name, "Launch")) return EventKind::kLaunch;
      break;
    case 12:
      if (category == "cuda_runtime" && has(name, "Launch")) return EventKind::kLaunch;
      break;
    default:
      break;
  }
  // Its shadow on the GPU has a category of its own.
  if (name.starts_with("ProfilerStep#") && category != "gpu_user_annotation") return EventKind::kStep;
  return EventKind::kOther;
}

EventKind kind_of(char phase, std::string_view category, std::string_view name) {
  switch (phase) {
    case 'X':
      return complete_event(category, name);
    case 's':
      return category == "ac2g" || category == "async_cpu_to_gpu" ? EventKind::kFlow : EventKind::kOther;
    case 'M':
      return name == "process_labels" ? EventKind::kLabel
             : name == "thread_name"  ? EventKind::kThread
                                      : EventKind::kOther;
    case 'i':
      return name == "Record Window End" ? EventKind::kWindowEnd : EventKind::kOther;
    default:
      return EventKind::kOther;
  }
}

}  // namespace

EventHead head_of(std::string_view event) {
  Keys keys(event);
  char phase = 0;
  std::string_view key, category, name, value;
  bool has_name = false;
  // Ends at the last key that is needed: `args`, the longest part of an event, mostly comes behind.
  while (phase == 0 || category.empty() || !has_name) {
    if (!keys.next(key)) break;
    if (!keys.value(value)) return {};
    if (key == "ph") {
      phase = value.size() == 1 ? value[0] : '?';
    } else if (key == "cat") {
      category = value;
    } else if (key == "name") {
      name = value;
      has_name = true;
      // These have no category.
      if (phase == 'M' || phase == 'i') break;
    }
  }
  return {.kind = kind_of(phase, category, name), .is_read = phase != 0, .is_timed = phase == 'X'};
}

}  // namespace lockstep::readers::kineto
