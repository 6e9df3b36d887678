// SPDX-License-Identifier: Apache-2.0
// Which tool printed a text is known by what it holds, not by the file's name: people paste output into files
// of any name. A record of our own is JSON and is recognised by its first bytes. What a tool does not report
// is said in the record's scope, so that nobody takes silence about the rest for health.
#include "links/printed/printed.h"

#include "links/printed/ethtool.h"
#include "links/printed/gpu_query.h"
#include "links/printed/ibstat.h"
#include "links/printed/lspci.h"
#include "links/printed/nvbandwidth.h"
#include "links/printed/nvlink.h"
#include "links/printed/p2p_matrices.h"
#include "links/printed/rdma_statistic.h"

namespace lockstep::links {
namespace {

constexpr PrintedFormat kFormats[] = {
#define FORMAT(name, tool, scope) {tool, scope, is_##name, parse_##name},
#include "links/printed/formats.def"
#undef FORMAT
};

}  // namespace

std::span<const PrintedFormat> printed_formats() { return kFormats; }

const PrintedFormat* printed_format_of(std::string_view text) {
  for (const PrintedFormat& format : kFormats)
    if (format.is(text)) return &format;
  return nullptr;
}

bool is_any(std::string_view text) {
  // Its own record begins with the name of its format.
  return printed_format_of(text) != nullptr ||
         (text.starts_with('{') && text.substr(0, 64).find("\"lockstep-links\"") != text.npos);
}

std::string_view tool_of(std::string_view text) {
  const PrintedFormat* const format = printed_format_of(text);
  return format == nullptr ? "lockstep links" : format->tool;
}

Result<LinksRecord> parse_any(std::string_view text, const std::string& where) {
  const PrintedFormat* const format = printed_format_of(text);
  if (format == nullptr) return parse_record(text, where);
  LOCKSTEP_ASSIGN(LinksRecord record, format->parse(text, where));
  record.scope = std::string(format->tool) + " shows only " + std::string(format->scope);
  return record;
}

}  // namespace lockstep::links
