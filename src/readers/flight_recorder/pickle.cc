// SPDX-License-Identifier: Apache-2.0
// Interprets the opcodes that a dump of plain lists, dicts, numbers and texts needs, and refuses every other
// one. Python's own reader executes what the file says: GLOBAL and REDUCE call any function. Nothing here can
// call anything. A file that ends early is not an error: what was built so far is handed out as cut.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <unordered_map>

#include "readers/flight_recorder/value.h"

namespace lockstep::readers::flight_recorder {
namespace {

using Kind = Value::Kind;

constexpr size_t kDeepest = 64;  // marks that are open at once
constexpr uint8_t kNewestProtocol = 5;
constexpr size_t kEntriesDepth = 2;  // marks below the entries of a dump

enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kBinFloat = 'G',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kDict = 'd',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kMemoize = 0x94,
  kFrame = 0x95,
};

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  Result<Document> run() {
    if (bytes_.size() < 2 || static_cast<uint8_t>(bytes_[0]) != kProto) return wrong("not a pickle");
    while (!stopped_) {
      op_at_ = at_;
      if (at_ == bytes_.size()) {
        problem_ = "";
      } else {
        step(static_cast<uint8_t>(bytes_[at_++]));
      }
      if (problem_ == nullptr) continue;
      if (*problem_ != 0) return wrong(problem_);
      return cut();
    }
    // A whole dump is one value.
    if (stack_.size() != 1 || !marks_.empty()) return wrong("it ends with open containers");
    document_.root = stack_.back();
    return std::move(document_);
  }

 private:
  // An empty text: the file ends early.
  void fail(const char* problem) {
    // The first one stands: others may follow from it.
    if (problem_ == nullptr) problem_ = problem;
  }
  Error wrong(const std::string& problem) const {
    return {ErrorCode::kInvalidInput,
            "not a Flight Recorder dump: " + problem + ", at byte " + std::to_string(op_at_),
            {}};
  }

  // What is complete: entries whose dict is closed, and the keys before them.
  Result<Document> cut() {
    problem_ = nullptr;
    while (marks_.size() > kEntriesDepth) {
      const size_t mark = marks_.back();
      marks_.pop_back();
      // With the container that it would have filled, if that is not below the next mark.
      stack_.resize(std::max(mark, marks_.back() + 1) - 1);
    }
    // An entry that was just begun.
    if (marks_.size() == kEntriesDepth && stack_.size() > marks_.back()) {
      const Value& last = document_.values[stack_.back()];
      if (last.kind == Kind::kDict && last.items.empty()) stack_.pop_back();
    }
    while (!marks_.empty()) {
      const size_t mark = marks_.back();
      if (mark == 0) return wrong("it ends before anything is complete");
      // From the inside out: each open container takes what lies above its mark, and a key that lost its
      // value goes.
      const bool is_dict = document_.values[stack_[mark - 1]].kind == Kind::kDict;
      if (is_dict && (stack_.size() - mark) % 2 != 0) stack_.pop_back();
      fill(is_dict ? Kind::kDict : Kind::kList);
      if (problem_ != nullptr) return wrong(problem_);
    }
    if (stack_.empty()) return wrong("it ends before anything is complete");
    document_.root = stack_.front();
    document_.cut = "the file ends at byte " + std::to_string(bytes_.size()) + ", inside";
    return std::move(document_);
  }

  // Little-endian.
  uint64_t take(size_t size) {
    if (bytes_.size() - at_ < size) {
      fail("");
      return 0;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < size; ++i) number |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << 8 * i;
    at_ += size;
    return number;
  }
  std::string_view take_text(uint64_t size) {
    if (problem_ != nullptr) return {};
    if (bytes_.size() - at_ < size) {
      fail("");
      return {};
    }
    const std::string_view text = bytes_.substr(at_, size);
    at_ += size;
    return text;
  }

  void push(Value value) {
    if (problem_ != nullptr) return;
    const ValueId id = document_.values.add(std::move(value));
    if (id == kNoValue) return fail("more values than any dump has");
    stack_.push_back(id);
  }
  void push_integer(int64_t integer) { push({.kind = Kind::kInt, .integer = integer}); }
  void push_text(uint64_t size) { push({.kind = Kind::kText, .text = take_text(size)}); }

  void push_long(uint64_t size) {
    if (size > 8) {  // does not fit: the largest that does
      const std::string_view digits = take_text(size);
      if (digits.empty()) return;
      return push_integer(static_cast<int8_t>(digits.back()) < 0 ? INT64_MIN : INT64_MAX);
    }
    // Two's complement in as few bytes as it needs.
    uint64_t number = take(size);
    if (size > 0 && size < 8 && (number >> (8 * size - 1) & 1) != 0) number |= ~uint64_t{0} << 8 * size;
    push_integer(static_cast<int64_t>(number));
  }

  void push_float() {
    const std::string_view digits = take_text(8);
    if (problem_ != nullptr) return;
    uint64_t bits = 0;
    // The only number of a pickle that is big-endian.
    for (const char digit : digits) bits = bits << 8 | static_cast<uint8_t>(digit);
    push({.kind = Kind::kFloat, .number = std::bit_cast<double>(bits)});
  }

  // Values that may be taken from the stack: those above the last mark.
  bool has(size_t count) {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) >= count) return true;
    fail("an operation without operands");
    return false;
  }

  void fill_with(ValueId container, Kind kind, size_t first) {
    Value& value = document_.values[container];
    if (value.kind != kind) return fail("items for something that takes none");
    if (kind == Kind::kDict && (stack_.size() - first) % 2 != 0) return fail("a key without a value");
    value.items.insert(value.items.end(), stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
  }
  // What lies above the last mark goes into the container below it.
  void fill(Kind kind) {
    if (marks_.empty() || marks_.back() == 0) return fail("items without a container");
    const size_t mark = marks_.back();
    // The container must lie inside the mark before, or it would be filled from outside.
    if (marks_.size() > 1 && marks_[marks_.size() - 2] > mark - 1) return fail("items without a container");
    marks_.pop_back();
    fill_with(stack_[mark - 1], kind, mark);
  }
  void fill_one(Kind kind, size_t count) {
    if (!has(count + 1)) return;
    const size_t first = stack_.size() - count;
    fill_with(stack_[first - 1], kind, first);
  }
  void tuple(size_t count) {
    if (!has(count)) return;
    Value value{.kind = Kind::kList};
    value.items.assign(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push(std::move(value));
  }
  void container_from_mark(Kind kind) {
    if (marks_.empty()) return fail("items without a mark");
    Value value{.kind = kind};
    const size_t first = marks_.back();
    marks_.pop_back();
    if (kind == Kind::kDict && (stack_.size() - first) % 2 != 0) return fail("a key without a value");
    value.items.assign(stack_.begin() + static_cast<ptrdiff_t>(first), stack_.end());
    stack_.resize(first);
    push(std::move(value));
  }

  void put(uint64_t index) {
    if (problem_ == nullptr && has(1)) memo_[index] = stack_.back();
  }
  void get(uint64_t index) {
    if (problem_ != nullptr) return;
    const auto found = memo_.find(index);
    if (found == memo_.end()) return fail("a reference to what was not kept");
    stack_.push_back(found->second);
    // References cost a byte or two of the file each, and a place on the stack.
    if (stack_.size() > Values::kMost) fail("more values than any dump has");
  }
  void mark() {
    if (marks_.size() >= kDeepest) return fail("containers nested deeper than any dump has");
    marks_.push_back(stack_.size());
  }

  void step(uint8_t op) {
    switch (op) {
      case kProto:
        if (take(1) > kNewestProtocol) fail("a pickle protocol that is newer than 5");
        return;
      // How much a reader should fetch at once; nothing about values.
      case kFrame:
        take(8);
        return;
      case kStop:
        stopped_ = true;
        return;
      case kNone:
        return push({});
      case kNewTrue:
      case kNewFalse:
        return push({.kind = Kind::kBool, .integer = op == kNewTrue});
      // Of the integers of fixed size only this one has a sign.
      case kBinInt:
        return push_integer(static_cast<int32_t>(take(4)));
      case kBinInt1:
        return push_integer(static_cast<int64_t>(take(1)));
      case kBinInt2:
        return push_integer(static_cast<int64_t>(take(2)));
      case kLong1:
        return push_long(take(1));
      case kLong4:
        return push_long(take(4));
      case kBinFloat:
        return push_float();
      case kShortBinUnicode:
        return push_text(take(1));
      case kBinUnicode:
        return push_text(take(4));
      case kBinUnicode8:
        return push_text(take(8));
      case kBinPut:
        return put(take(1));
      case kLongBinPut:
        return put(take(4));
      // Its index is the number of those before it.
      case kMemoize:
        return put(memo_.size());
      case kBinGet:
        return get(take(1));
      case kLongBinGet:
        return get(take(4));
      default:
        return step_container(op);
    }
  }

  void step_container(uint8_t op) {
    switch (op) {
      case kMark:
        return mark();
      case kEmptyDict:
        return push({.kind = Kind::kDict});
      case kEmptyList:
      case kEmptyTuple:
      case kEmptySet:
        return push({.kind = Kind::kList});
      case kDict:
        return container_from_mark(Kind::kDict);
      case kList:
      case kTuple:
        return container_from_mark(Kind::kList);
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return tuple(op - size_t{kTuple1} + 1);
      case kSetItems:
        return fill(Kind::kDict);
      case kAppends:
      case kAddItems:
        return fill(Kind::kList);
      case kSetItem:
        return fill_one(Kind::kDict, 2);
      case kAppend:
        return fill_one(Kind::kList, 1);
      case kPop:
        if (has(1)) stack_.pop_back();
        return;
      case kPopMark:
        if (marks_.empty()) return fail("items without a mark");
        stack_.resize(marks_.back());
        marks_.pop_back();
        return;
      default:
        // GLOBAL, REDUCE and INST end up here.
        return fail("an opcode that plain values do not need (nothing of it was run)");
    }
  }

  std::string_view bytes_;
  size_t at_ = 0, op_at_ = 0;
  const char* problem_ = nullptr;
  bool stopped_ = false;
  Document document_;
  std::vector<ValueId> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  // Indexes are the file's choice: a map, as a large one must not cost memory.
  std::unordered_map<uint64_t, ValueId> memo_;
};

}  // namespace

Result<Document> read_pickle(std::string_view bytes) { return Machine(bytes).run(); }

}  // namespace lockstep::readers::flight_recorder
