// SPDX-License-Identifier: Apache-2.0
// How the words of format/control_words.h go into a mapped header and out of it: each by itself, as another
// process may write it at the same moment. In which order is said by those who store `check`, `control` and
// `taken`.
//
// Both headers may be mapped and shared. No copy is a snapshot: whoever needs one checks `check` or `taken`
// afterwards.
#pragma once
#include "format/control_words.h"

namespace lockstep::format {

// Relaxed loads and stores: no word waits for another; the order comes from the words named above.
template <class Word>
Word load_word(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_RELAXED);
}
template <class Word>
void store_word(Word& word, Word value) {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}

// `check` is copied last, so that a request that is copied while it is written does not fit its check.
inline void copy_words(ControlRequest& to, const ControlRequest& from) {
  const auto copy = [](auto& word, const auto& value) { store_word(word, load_word(value)); };
  copy(to.what, from.what);
  copy(to.mode, from.mode);
  copy(to.keep, from.keep);
  copy(to.of, from.of);
  copy(to.min_bytes, from.min_bytes);
  copy(to.until_monotonic_ns, from.until_monotonic_ns);
  copy(to.comms, from.comms);
  copy(to.reserved, from.reserved);
  for (uint32_t i = 0; i < kControlComms; ++i) copy(to.comm_ids[i], from.comm_ids[i]);
  for (uint32_t i = 0; i < kControlTextBytes / 8; ++i) copy(to.text[i], from.text[i]);
  copy(to.check, from.check);
}

}  // namespace lockstep::format
