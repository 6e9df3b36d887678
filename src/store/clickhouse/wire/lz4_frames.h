// SPDX-License-Identifier: Apache-2.0
// Bodies as ClickHouse takes them with `decompress=1`: frames of one MiB, each compressed by LZ4. Their
// checksums are zero, which the server is told not to look at: TCP and TLS keep the bytes, and what arrived
// is compared in the end.
#pragma once
#include <string>
#include <string_view>

namespace lockstep::store::clickhouse {

// At most a 200th larger than the body, mostly several times smaller.
std::string lz4_frames(std::string_view body);

}  // namespace lockstep::store::clickhouse
