// SPDX-License-Identifier: Apache-2.0
#include "capture/core/host/visible_devices.h"

#include <stdlib.h>
#include <string.h>

namespace lockstep::capture {
namespace {

const char* set_value(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && value[0] != 0 ? value : nullptr;
}

// Of a list between commas; its length is 0 where there are not as many.
const char* word_at(const char* list, unsigned long place, size_t* length) {
  for (; place > 0; --place) {
    list += strcspn(list, ",");
    if (*list == 0) break;
    ++list;
  }
  *length = strcspn(list, ",");
  return list;
}

// The words of `list` at the places that `places` has. The first that is no number ends it.
void compose(const char* places, const char* list, char (&out)[256]) {
  size_t length = 0;
  for (const char* at = places; *at >= '0' && *at <= '9';) {
    char* end = nullptr;
    size_t bytes = 0;
    const char* word = word_at(list, strtoul(at, &end, 10), &bytes);
    if (bytes == 0 || length + 1 + bytes >= sizeof out) break;
    if (length > 0) out[length++] = ',';
    memcpy(out + length, word, bytes);
    length += bytes;
    if (*end != ',') break;
    at = end + 1;
  }
  // An empty list would be one that hides nothing.
  if (length == 0) out[length++] = '-';
  out[length] = 0;
}

}  // namespace

// Slurm sets the variables of all makers, whosever GPUs the host has. HIP takes CUDA's list where it has none
// of its own, and numbers from 0 what it names among those that ROCr's list has left.
void read_visible_devices(Maker maker, char (&out)[256]) {
  const char* own = maker == Maker::kAmd ? set_value("HIP_VISIBLE_DEVICES") : nullptr;
  if (own == nullptr) own = set_value("CUDA_VISIBLE_DEVICES");
  const char* left = maker == Maker::kAmd ? set_value("ROCR_VISIBLE_DEVICES") : nullptr;
  if (own != nullptr && left != nullptr) return compose(own, left, out);
  const char* only = own != nullptr ? own : left != nullptr ? left : "";
  const size_t length = strnlen(only, sizeof out - 1);
  memcpy(out, only, length);
  out[length] = 0;
}

}  // namespace lockstep::capture
