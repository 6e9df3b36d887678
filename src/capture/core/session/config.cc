// SPDX-License-Identifier: Apache-2.0
// A setting that is not understood must not cost the job its records: the default is taken, and one line says
// which word was not. What comes from outside into a path (host, job id) stays one component of it.
#include "capture/core/session/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/session/control.h"

namespace lockstep::capture {
namespace {

// False if it is longer than `size` allows.
bool expand_tokens(const char* text, const Identity& identity, char* out, size_t size) {
  size_t used = 0;
  bool fits = true;
  auto put = [&](const char* piece) {
    size_t length = strlen(piece);
    fits = fits && length <= size - 1 - used;
    if (!fits) return;
    memcpy(out + used, piece, length);
    used += length;
  };
  // A name from outside stays one component of the path.
  auto put_name = [&](const char* name) {
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) name = "_";
    for (; *name != 0; ++name) {
      const char one[2] = {*name == '/' ? '_' : *name, 0};
      put(one);
    }
  };
  char number[16];
  for (const char* c = text; *c != 0; ++c) {
    const char one[2] = {*c, 0};
    if (*c != '%' || c[1] == 0) {
      put(one);
      continue;
    }
    switch (*++c) {
      case 'p':
        snprintf(number, sizeof number, "%d", identity.pid);
        put(number);
        break;
      case 'r':
        snprintf(number, sizeof number, "%d", identity.rank);
        put(number);
        break;
      case 'n':
        snprintf(number, sizeof number, "%d", identity.node_rank);
        put(number);
        break;
      case 'h':
        put_name(identity.host);
        break;
      case 'j':
        put_name(identity.job_id[0] != 0 ? identity.job_id : "nojob");
        break;
      case '%':
        put("%");
        break;
      // A percent sign that begins no token stays as it is.
      default:
        put("%");
        --c;
        break;
    }
  }
  out[used] = 0;
  return fits;
}

constexpr char kDefaultDirectory[] = "lockstep-run";

void complain(Config* config, const char* variable, const char* value, const char* taken) {
  if (config->problem[0] == 0)
    snprintf(config->problem, sizeof config->problem, "%s=%.60s is not understood; using %s", variable, value,
             taken);
}

void parse_retention(const char* text, Config* config) {
  config->retention = format::Retention::kStream;
  config->cap_bytes = kDefaultCapBytes;
  if (text == nullptr || *text == 0) return;
  const char* colon = strchr(text, ':');
  size_t word = colon != nullptr ? static_cast<size_t>(colon - text) : strlen(text);
  bool stream = word == 6 && memcmp(text, "stream", 6) == 0;
  bool ring = word == 4 && memcmp(text, "ring", 4) == 0;
  uint64_t bytes = ring ? kDefaultRingBytes : kDefaultCapBytes;
  if ((!stream && !ring) || (colon != nullptr && !parse_size(colon + 1, &bytes))) {
    complain(config, "LOCKSTEP_RETAIN", text, "stream:4G");
    return;
  }
  if (ring) config->retention = format::Retention::kRing;
  config->cap_bytes = bytes;
}

}  // namespace

bool parse_size(const char* text, uint64_t* bytes) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  int shift = 0;
  if (*end == 'K' || *end == 'k') shift = 10;
  if (*end == 'M' || *end == 'm') shift = 20;
  if (*end == 'G' || *end == 'g') shift = 30;
  if (shift != 0) ++end;
  if (errno != 0 || *end != 0 || value == 0 || value > (~0ull >> shift)) return false;
  *bytes = value << shift;
  return true;
}

Config read_config(const Identity& identity) {
  Config config{};
  const char* directory = getenv("LOCKSTEP_DIR");
  if (directory == nullptr || *directory == 0) directory = kDefaultDirectory;
  if (!expand_tokens(directory, identity, config.directory, sizeof config.directory)) {
    strcpy(config.directory, kDefaultDirectory);
    snprintf(config.problem, sizeof config.problem,
             "LOCKSTEP_DIR=%.40s... is longer than %zu bytes; using %s", directory,
             sizeof config.directory - 1, kDefaultDirectory);
  }
  const char* mode = getenv("LOCKSTEP_MODE");
  config.mode = format::Mode::kDefault;
  if (mode != nullptr && *mode != 0) {
    if (strcmp(mode, "lite") == 0)
      config.mode = format::Mode::kLite;
    else if (strcmp(mode, "deep") == 0 || strcmp(mode, format::kDeepAlias) == 0)
      config.mode = format::Mode::kDeep;
    else if (strcmp(mode, "off") == 0)
      config.mode = format::Mode::kOff;
    else if (strncmp(mode, "sample=", 7) == 0 &&
             parse_sample(mode + 7, &config.sample_keep, &config.sample_of))
      config.mode = format::Mode::kSample;
    else if (strcmp(mode, "default") != 0 && strcmp(mode, format::kDefaultAlias) != 0)
      complain(&config, "LOCKSTEP_MODE", mode, "default");
  }
  parse_retention(getenv("LOCKSTEP_RETAIN"), &config);
  return config;
}

}  // namespace lockstep::capture
