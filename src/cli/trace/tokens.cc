// SPDX-License-Identifier: Apache-2.0
// Expands tokens in the launcher as the capture libraries do in each process, so that one setting means the
// same in both. Values come from outside and may hold slashes.
#include "cli/trace/tokens.h"

namespace lockstep::cli::trace {
namespace {

// A name from outside stays one component of a path.
std::string component(std::string name) {
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name == "." || name == ".." ? "_" : name;
}

}  // namespace

std::string expand_tokens(std::string_view text, const run::ProcessIdentity& identity,
                          const run::JobPlace& place) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'p':
        out += std::to_string(identity.pid);
        break;
      case 'h':
        out += component(identity.host);
        break;
      case 'r':
        out += std::to_string(place.rank);
        break;
      case 'n':
        out += std::to_string(place.node_rank);
        break;
      case 'j':
        out += place.job.empty() ? "nojob" : component(place.job);
        break;
      case '%':
        out += '%';
        break;
      default:
        (out += '%') += text[i];
        break;
    }
  }
  return out;
}

std::string protect_tokens(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

}  // namespace lockstep::cli::trace
