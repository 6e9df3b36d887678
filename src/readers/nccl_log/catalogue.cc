// SPDX-License-Identifier: Apache-2.0
// A line is compared with the patterns that begin as it does, by four characters, instead of with all of some
// 400. Those with a shorter beginning come last, for lines that no other pattern fits.
#include "readers/nccl_log/catalogue.h"

#include <array>
#include <cstring>
#include <vector>

namespace lockstep::readers::nccl_log {
namespace {

struct Row {
  LineKind kind;
  std::string_view text;
};
constexpr Row kRows[] = {
#define KIND(name, captures)
#define PATTERN(kind, text) {LineKind::k##kind, text},
#include "readers/nccl_log/lines.def"
#undef PATTERN
#undef KIND
};

class Catalogue {
 public:
  Catalogue() {
    for (const Row& row : kRows) {
      Pattern pattern(row.text);
      auto& bucket = pattern.head().size() < kKey ? without_key_ : buckets_[bucket_of(pattern.head())];
      // In the order of lines.def: of several patterns that fit the first counts.
      bucket.push_back({row.kind, pattern});
    }
  }

  LineKind classify(std::string_view body, Captures& captures) const {
    if (body.size() >= kKey) {
      const LineKind kind = first_of(buckets_[bucket_of(body)], body, captures);
      if (kind != LineKind::kUnknown) return kind;
    }
    return first_of(without_key_, body, captures);
  }

 private:
  static constexpr size_t kKey = 4;
  static constexpr size_t kBuckets = 1024;
  struct Entry {
    LineKind kind;
    Pattern pattern;
  };

  static size_t bucket_of(std::string_view text) {
    uint32_t key = 0;
    std::memcpy(&key, text.data(), kKey);
    // The upper ten bits of a product that mixes all four bytes. Two beginnings in one bucket cost
    // comparisons, and no wrong answer.
    return key * 2654435761U >> 22;
  }
  static LineKind first_of(const std::vector<Entry>& entries, std::string_view body, Captures& captures) {
    for (const Entry& entry : entries) {
      if (entry.pattern.match(body, captures)) return entry.kind;
    }
    return LineKind::kUnknown;
  }

  std::array<std::vector<Entry>, kBuckets> buckets_;
  std::vector<Entry> without_key_;
};

}  // namespace

LineKind classify(std::string_view body, Captures& captures) {
  static const Catalogue kCatalogue;
  return kCatalogue.classify(body, captures);
}

LineKind classify_words(std::string_view body) {
  static constexpr Row kWords[] = {
#define WORDS(kind, text) {LineKind::k##kind, text},
#include "readers/nccl_log/words.def"
#undef WORDS
  };
  // In the order of words.def, where causes stand before the parts of NCCL that meet them.
  for (const Row& row : kWords) {
    if (body.find(row.text) != std::string_view::npos) return row.kind;
  }
  return LineKind::kUnknown;
}

}  // namespace lockstep::readers::nccl_log
