// SPDX-License-Identifier: Apache-2.0
// Feeds arbitrary bytes to what reads the answers of a store: the first byte says which status came with
// them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/clickhouse/wire/address.h"
#include "store/clickhouse/wire/answers.h"

namespace {

using namespace lockstep::store::clickhouse;

void check(bool condition) {
  if (!condition) std::abort();
}

void judge_all(const HttpAnswer& answer) {
  for (const bool wants_nothing : {false, true}) {
    const Judgement judgement = judge(answer, wants_nothing, true);
    const bool is_done = judgement.meaning == Meaning::kDone;
    check(is_done == judgement.error.text.empty());
    check(!is_done || (answer.status == 200 && !error_code(answer.body)));
    check(!is_done || !wants_nothing || answer.body.empty());
    check(!has_control(judgement.error.text));
    check(judgement.error.text.size() < 1000);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr long kStatuses[] = {200, 200, 401, 404, 500, 503, 0};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  HttpAnswer answer;
  answer.status = kStatuses[data[0] % std::size(kStatuses)];
  answer.body = text;
  judge_all(answer);
  answer.failure = data[0];
  answer.error = text.substr(0, curl::kErrorBytes);
  if (answer.failure != 0) judge_all(answer);
  for (const size_t columns : {1, 3}) {
    const auto rows = parse_rows(text, columns);
    if (!rows) continue;
    for (const auto& row : *rows) check(row.size() == columns);
    check(rows->size() == static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
  }
  if (const auto version = parse_version(text)) check(version->major < 10'000 && version->minor < 10'000);
  if (const auto address = parse_address(text)) {
    check(!address->database.empty() && !address->base.empty() && !has_control(address->user + address->key));
  }
  return 0;
}
