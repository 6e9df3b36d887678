// SPDX-License-Identifier: Apache-2.0
// The tables of a store as this version of Lockstep wants them.
#pragma once
#include <string>

#include "base/result.h"
#include "store/clickhouse/tables.h"
#include "store/clickhouse/wire/client.h"

namespace lockstep::store::clickhouse {

// Makes what is missing of the database and its tables from `first` to `last`. Who may not make tables can
// write into those that are there. kUnsupported: one has another shape.
Result<void> make_tables(Client& client, const std::string& database, TableId first, TableId last);

// Only looks: kUnsupported, too, where one is missing.
Result<void> check_tables(Client& client, const std::string& database, TableId first, TableId last);

}  // namespace lockstep::store::clickhouse
