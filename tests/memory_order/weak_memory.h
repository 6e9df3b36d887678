// SPDX-License-Identifier: Apache-2.0
// All that a thread may see of another's stores under the memory model of C++ (RC11: loads, stores and
// fences, relaxed, acquire or release). A CPU that orders weakly shows no more. Each word keeps its history;
// a thread has a view, the oldest value of each word that it may still read. A load takes any value from
// there on: explore() tries all of them.
//
// What runs is a protocol written down in this form, not the product's code. Threads run one after the other,
// the writer first, which loses nothing where the writer reads nothing of the reader's; each word has one
// writer at a time. One thread; throws nothing.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace lockstep::test::weak {

enum class Order { kRelaxed, kAcquire, kRelease };
inline constexpr int kMostWords = 16;

// Which of the possible values each load takes: every combination once.
class Choices {
 public:
  uint32_t pick(uint32_t of) {
    if (at_ == taken_.size()) taken_.push_back({0, of});
    return taken_[at_++].value;
  }
  // To the next combination; false after the last.
  bool next() {
    at_ = 0;
    while (!taken_.empty() && taken_.back().value + 1 == taken_.back().of) taken_.pop_back();
    if (taken_.empty()) return false;
    ++taken_.back().value;
    return true;
  }

 private:
  struct Choice {
    uint32_t value, of;
  };
  std::vector<Choice> taken_;
  size_t at_ = 0;
};

using View = std::array<uint32_t, kMostWords>;  // by word: index of the oldest value that may be read
inline void join(View& view, const View& other) {
  for (int word = 0; word < kMostWords; ++word)
    view[word] = view[word] > other[word] ? view[word] : other[word];
}

struct Memory {
  struct Value {
    uint64_t value = 0;
    View released{};  // what who reads it with acquire has seen, too
  };
  std::array<std::vector<Value>, kMostWords> words;
  explicit Memory(const std::vector<uint64_t>& initial = {}) {
    for (size_t word = 0; word < words.size(); ++word)
      words[word].push_back({word < initial.size() ? initial[word] : 0, {}});
  }
};

class Thread {
 public:
  Thread(Memory& memory, Choices& choices) : memory_(&memory), choices_(&choices) {}

  void store(int word, uint64_t value, Order order = Order::kRelaxed) {
    auto& history = memory_->words[static_cast<size_t>(word)];
    seen_[static_cast<size_t>(word)] = static_cast<uint32_t>(history.size());
    join(seen_if_fenced_, seen_);
    View released = order == Order::kRelease ? seen_ : fenced_;
    released[static_cast<size_t>(word)] = seen_[static_cast<size_t>(word)];
    history.push_back({value, released});
  }
  uint64_t load(int word, Order order = Order::kRelaxed) {
    const auto& history = memory_->words[static_cast<size_t>(word)];
    uint32_t& oldest = seen_[static_cast<size_t>(word)];
    oldest += choices_->pick(static_cast<uint32_t>(history.size()) - oldest);
    const Memory::Value& value = history[oldest];
    join(seen_if_fenced_, value.released);
    if (order == Order::kAcquire) join(seen_, value.released);
    join(seen_if_fenced_, seen_);
    return value.value;
  }
  void fence(Order order) {
    if (order == Order::kAcquire) seen_ = seen_if_fenced_;
    if (order == Order::kRelease) fenced_ = seen_;
  }

 private:
  Memory* memory_;
  Choices* choices_;
  View seen_{}, seen_if_fenced_{}, fenced_{};
};

struct Explored {
  uint64_t ways = 0;
  uint64_t wrong = 0;  // of them: those for which `run` returned false
};
// Runs the protocol once for every way in which its loads may turn out. `run` returns whether the reader was
// right.
inline Explored explore(const std::function<bool(Choices&)>& run) {
  Explored explored;
  Choices choices;
  do {
    ++explored.ways;
    explored.wrong += !run(choices);
  } while (choices.next());
  return explored;
}

}  // namespace lockstep::test::weak
