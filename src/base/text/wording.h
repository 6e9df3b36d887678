// SPDX-License-Identifier: Apache-2.0
// Words that findings are made of: numbers as people read them, ranks as lists, operations by their place.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::wording {

// What makes a run say when its kernels ran.
constexpr std::string_view gpu_times_setting(bool is_amd) {
  return is_amd
             ? "lockstep trace without LOCKSTEP_HSA=off (liblockstep-hsa.so); LOCKSTEP_HSA=sdk beside rocprofiler's SDK"
             : "LOCKSTEP_CUDA=kernels (liblockstep-cuda.so), or lockstep trace -m deep";
}

// Of capture files that are cut or damaged: what to do, and what would decide it.
inline constexpr std::string_view kCopyAgain =
    "Copy these files again, whole, from where the job wrote them; if they are damaged there too, check that disk.";
inline constexpr std::string_view kWholeFiles = "whole files of these ranks";

// Any thread. Negative values keep their sign.
std::string duration(int64_t ns);   // "12.3 ms"; three significant digits
std::string bytes(uint64_t bytes);  // "1.5 MiB"
// The same, but to the byte where another number that must differ from it would read alike: "1,048,580 B".
std::string bytes_beside(uint64_t bytes, uint64_t other);
std::string rate(double bytes_per_second);  // "12.3 GB/s", GB = 1e9 bytes
std::string percent(double fraction);       // "12 %"
std::string ordinal(uint64_t number);       // "1st", "2nd", "1,295th"
// "1 rank", "7 ranks"
std::string count(uint64_t number, std::string_view noun);
// A name from outside as it may be shown: see base/utf8.h.
std::string name(std::string_view text, size_t most = 64);
// "rank 5", "ranks 0-3 and 7"; more than `most` pieces end in "and 12 others". Ascending, without repeats.
std::string ranks(const std::vector<int32_t>& ranks, size_t most = 8);
// "rank 0's file is incomplete: 3 chunks of 15 cannot be read", of several processes without what is missing.
std::string incomplete(const std::vector<std::string>& processes, std::string_view missing);

}  // namespace lockstep::wording
