// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli) of 64-bit words, by the processor's instruction where there is one. Needs no library: capture uses it.
#pragma once
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lockstep::format {

namespace crc32c_detail {

struct Table {
  uint32_t of[8][256];
};
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

inline uint32_t portable(uint32_t crc, const uint64_t* words, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = words[i] ^ crc;
    crc = 0;
    for (size_t byte = 0; byte < 8; ++byte) crc ^= kTable.of[7 - byte][value >> 8 * byte & 0xff];
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) inline uint32_t by_instruction(uint32_t crc, const uint64_t* words,
                                                                 size_t count) {
  uint64_t sum = crc;
  for (size_t i = 0; i < count; ++i) sum = __builtin_ia32_crc32di(sum, words[i]);
  return static_cast<uint32_t>(sum);
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

class Crc32c {
 public:
#if defined(__x86_64__)
  Crc32c()
      : add_(crc32c_detail::has_instruction() ? crc32c_detail::by_instruction : crc32c_detail::portable) {}
#else
  Crc32c() : add_(crc32c_detail::portable) {}
#endif
  // Begin with kBegin, end with ~.
  static constexpr uint32_t kBegin = 0xffffffff;
  uint32_t add(uint32_t crc, const uint64_t* words, size_t count) const { return add_(crc, words, count); }

 private:
  uint32_t (*add_)(uint32_t, const uint64_t*, size_t);
};

}  // namespace lockstep::format
