// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, the polynomial of iSCSI and ext4: 0x82f63b78 with its bits reversed) of 64-bit words,
// by the processor's instruction where there is one. Needs no library: capture uses it. Nothing allocates or
// fails; any thread.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep::format {

namespace crc32c_detail {

// of[i][b]: the sum of byte b with i bytes of zero behind it, so that eight look-ups take a word (slicing by
// eight).
struct Table {
  uint32_t of[8][256];
};
// One bit after the other for a single byte; each further zero byte is one look-up more.
constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table.of[0][byte] = crc;
  }
  for (uint32_t byte = 0; byte < 256; ++byte) {
    for (size_t i = 1; i < 8; ++i)
      table.of[i][byte] = table.of[i - 1][byte] >> 8 ^ table.of[0][table.of[i - 1][byte] & 0xff];
  }
  return table;
}
inline constexpr Table kTable = make_table();

// Bytes of a word count from its lowest on, as the instruction does it.
inline uint32_t portable(uint32_t crc, const uint64_t* words, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = words[i] ^ crc;
    crc = 0;
    for (size_t byte = 0; byte < 8; ++byte) crc ^= kTable.of[7 - byte][value >> 8 * byte & 0xff];
  }
  return crc;
}

// Word `i` of bytes that need not be aligned.
inline uint64_t word_at(const unsigned char* bytes, size_t i) {
  uint64_t word;
  std::memcpy(&word, bytes + i * sizeof word, sizeof word);
  return word;
}

// The same words under two masks: three sums side by side, none of which has to wait for another.
struct MaskedSums {
  uint32_t first, second;  // under mask
  uint32_t other;          // under other_mask
};
// `bytes` has `count` words of any alignment; a byte counts only where its mask has bits.
inline void portable_masked(MaskedSums& sums, const unsigned char* bytes, const uint64_t* mask,
                            const uint64_t* other_mask, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = word_at(bytes, i) & mask[i], other = word_at(bytes, i) & other_mask[i];
    sums.first = portable(sums.first, &word, 1);
    sums.second = portable(sums.second, &word, 1);
    sums.other = portable(sums.other, &other, 1);
  }
}

#if defined(__x86_64__)
// Only where has_instruction() says so: elsewhere the instruction ends the process.
__attribute__((target("sse4.2"))) inline uint32_t by_instruction(uint32_t crc, const uint64_t* words,
                                                                 size_t count) {
  uint64_t sum = crc;
  for (size_t i = 0; i < count; ++i) sum = __builtin_ia32_crc32di(sum, words[i]);
  return static_cast<uint32_t>(sum);
}
// Three chains in one loop: each sum waits for its own last step only, so the processor overlaps them.
__attribute__((target("sse4.2"))) inline void by_instruction_masked(MaskedSums& sums,
                                                                    const unsigned char* bytes,
                                                                    const uint64_t* mask,
                                                                    const uint64_t* other_mask,
                                                                    size_t count) {
  uint64_t first = sums.first, second = sums.second, other = sums.other;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t word = word_at(bytes, i);
    first = __builtin_ia32_crc32di(first, word & mask[i]);
    second = __builtin_ia32_crc32di(second, word & mask[i]);
    other = __builtin_ia32_crc32di(other, word & other_mask[i]);
  }
  sums = {static_cast<uint32_t>(first), static_cast<uint32_t>(second), static_cast<uint32_t>(other)};
}
// Asks once: a virtual machine's host answers, which takes it a while.
inline bool has_instruction() {
  static int known = 0;  // 1 no, 2 yes
  int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (answer == 0) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    answer = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_2) != 0 ? 2 : 1;
    __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
  }
  return answer == 2;
}
#endif

}  // namespace crc32c_detail

// Chooses instruction or table when it is made; any number of them may be used on any threads. A `count` is
// in words of 8 bytes. Both ways give the same sums, so a file may be sealed and checked on different
// machines.
class Crc32c {
 public:
  using MaskedSums = crc32c_detail::MaskedSums;
#if defined(__x86_64__)
  Crc32c() {
    if (!crc32c_detail::has_instruction()) return;
    add_ = crc32c_detail::by_instruction;
    add_masked_ = crc32c_detail::by_instruction_masked;
  }
#endif
  // Begin with kBegin, end with ~.
  static constexpr uint32_t kBegin = 0xffffffff;
  // The sum so far, with `count` words more.
  uint32_t add(uint32_t crc, const uint64_t* words, size_t count) const { return add_(crc, words, count); }
  // Words of any alignment, each under two masks. The masks have `count` words, too.
  void add_masked(MaskedSums& sums, const unsigned char* bytes, const uint64_t* mask,
                  const uint64_t* other_mask, size_t count) const {
    add_masked_(sums, bytes, mask, other_mask, count);
  }

 private:
  uint32_t (*add_)(uint32_t, const uint64_t*, size_t) = crc32c_detail::portable;
  void (*add_masked_)(MaskedSums&, const unsigned char*, const uint64_t*, const uint64_t*,
                      size_t) = crc32c_detail::portable_masked;
};

}  // namespace lockstep::format
