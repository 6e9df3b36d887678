// SPDX-License-Identifier: Apache-2.0
// Questions about links, and about one host, two runs or one operation: @FIRST and @SECOND are what they are
// about, as literals.
#pragma once
#include <string_view>

#include "store/fleet_questions.h"

namespace lockstep::store::clickhouse::questions {

using enum FleetColumn::Kind;

// Each pair of hosts that a finding of a run names, where it names two.
inline constexpr std::string_view kNamedLinks =
    R"sql(SELECT DISTINCT run, what, host, peer FROM (
          SELECT run, class AS what, host, ends FROM (
            SELECT run, class, hosts AS ends FROM @DB.findings FINAL
            WHERE day >= today() - @DAYS AND severity != 'note' AND length(hosts) = 2
              AND class IN ('slow-link', 'slow-nic', 'transport-error', 'stuck-in-network')
          ) ARRAY JOIN ends AS host
        ) ARRAY JOIN ends AS peer WHERE host < peer)sql";
inline constexpr std::string_view kNamedPairs =
    R"sql(SELECT what, host, peer, uniqExact(run) AS named, min(started) AS first, max(started) AS last FROM (
        SELECT run, what, host, peer, started FROM (
        @LINKS
        ) ALL INNER JOIN (
          SELECT run, started_ns AS started FROM @DB.runs FINAL WHERE day >= today() - @DAYS
        ) USING run
      ) GROUP BY what, host, peer HAVING named > 1)sql";

// If no link were different, each pair of hosts of a run would be as likely to be the one that a finding
// names. A pair is expected in the sum of that over the runs of both; that it is named so much more often has
// at most the chance that Chernoff's bound gives, times the pairs of hosts that there are.
inline constexpr std::string_view kLinksSql =
    R"sql(SELECT what, host, peer, runs, of_runs, expected,
  least(1, tests * exp(runs - expected + runs * log(expected / runs))) AS chance, first_ns, last_ns
FROM (
  SELECT what, host, peer, runs, first_ns, last_ns, expected, of_runs FROM (
    SELECT what, host, peer, any(named) AS runs, any(first) AS first_ns, any(last) AS last_ns, sum(rate) AS expected
    FROM (
      @PAIRS
    ) CROSS JOIN (
      SELECT of_what, together, count() * 2 / (length(together) * (length(together) - 1)) AS rate FROM (
        SELECT run, what AS of_what, together FROM (
        @LINKS
        ) ALL INNER JOIN (
          SELECT run, hosts AS together FROM @DB.runs FINAL WHERE day >= today() - @DAYS
        ) USING run
      ) GROUP BY run, of_what, together
    ) WHERE what = of_what AND has(together, host) AND has(together, peer) GROUP BY what, host, peer
  ) ALL INNER JOIN (
    SELECT what, host, peer, count() AS of_runs FROM (
      @PAIRS
    ) CROSS JOIN (
      SELECT hosts AS together FROM @DB.runs FINAL WHERE day >= today() - @DAYS
    ) WHERE has(together, host) AND has(together, peer) GROUP BY what, host, peer
  ) USING what, host, peer
) CROSS JOIN (
  SELECT 4 * uniqExact(one) * (uniqExact(one) - 1) / 2 AS tests
  FROM @DB.runs FINAL ARRAY JOIN hosts AS one WHERE day >= today() - @DAYS
) WHERE runs > expected AND chance < 0.01 ORDER BY chance, what, host, peer)sql";
inline constexpr FleetColumn kLinkColumns[] = {
    {"what", kText},     {"host", kText},        {"peer", kText},
    {"runs", kCount},    {"of_runs", kCount},    {"expected_runs", kNumber, 1},
    {"chance", kChance}, {"first_ns", kTime, 2}, {"last_ns", kTime, 1}};

// The newest first: who looks for what a host has broken begins with today.
inline constexpr std::string_view kJobsSql =
    R"sql(SELECT toString(run) AS number, name, started_ns, ended_ns, verdict, named, blamed / 3.6e12 AS blamed_hours
FROM (
  SELECT run, name, started_ns, ended_ns, verdict, arrayStringConcat(ids, ', ') AS named FROM (
    SELECT run, name, started_ns, ended_ns, verdict FROM @DB.runs FINAL
    WHERE day >= today() - @DAYS AND has(hosts, @FIRST)
  ) ALL LEFT JOIN (
    SELECT run, arraySort(groupUniqArray(id)) AS ids FROM @DB.findings FINAL
    WHERE day >= today() - @DAYS AND severity != 'note' AND has(hosts, @FIRST) GROUP BY run
  ) USING run
) ALL LEFT JOIN (
  SELECT run, sum(blamed_ns) AS blamed FROM @DB.rollups FINAL
  WHERE day >= today() - @DAYS AND host = @FIRST GROUP BY run
) USING run ORDER BY started_ns DESC, run)sql";
inline constexpr FleetColumn kJobColumns[] = {{"run", kText, 2},          {"name", kText},
                                              {"started_ns", kTime},      {"ended_ns", kTime, 3},
                                              {"verdict", kText},         {"findings_on_host", kText},
                                              {"blamed_hours", kHours, 1}};

// Of several runs of one name the newest.
inline constexpr std::string_view kCompareSql =
    R"sql(SELECT func, size_bits, first_ops, second_ops, first_busbw, second_busbw,
  second_busbw / first_busbw - 1 AS change, first_waited, second_waited
FROM (
  SELECT func, size_bits, sumIf(ops, is_first) AS first_ops, sumIf(ops, NOT is_first) AS second_ops,
    sumIf(bus_bytes, is_first) / sumIf(moving_ns, is_first) AS first_busbw,
    sumIf(bus_bytes, NOT is_first) / sumIf(moving_ns, NOT is_first) AS second_busbw,
    if(sumIf(compared, is_first) = 0, -1, sumIf(waited_ns, is_first) / sumIf(compared, is_first)) AS first_waited,
    if(sumIf(compared, NOT is_first) = 0, -1, sumIf(waited_ns, NOT is_first) / sumIf(compared, NOT is_first)) AS second_waited
  FROM (
    SELECT func, size_bits, ops, bus_bytes, moving_ns, compared, waited_ns, run = one AS is_first
    FROM (
      SELECT run, func, size_bits, ops, bus_bytes, moving_ns, compared, waited_ns
      FROM @DB.rollups FINAL WHERE day >= today() - @DAYS
    ) CROSS JOIN (
      SELECT argMaxIf(run, started_ns, name = @FIRST OR toString(run) = @FIRST) AS one,
        argMaxIf(run, started_ns, name = @SECOND OR toString(run) = @SECOND) AS other
      FROM @DB.runs FINAL WHERE day >= today() - @DAYS
    ) WHERE run = one OR run = other
  ) GROUP BY func, size_bits
) WHERE first_ops > 0 AND second_ops > 0 ORDER BY func, size_bits)sql";
inline constexpr FleetColumn kCompareColumns[] = {
    {"func", kText},           {"size_bits", kSize},          {"first_ops", kCount, 2},
    {"second_ops", kCount, 2}, {"first_busbw", kRate},        {"second_busbw", kRate},
    {"change", kShare},        {"first_waited_ns", kSpan, 1}, {"second_waited_ns", kSpan, 1}};

// The last to come first: who waited for whom.
inline constexpr std::string_view kOpSql =
    R"sql(SELECT toString(run) AS number, rank, host, func, op_index, entered_ns,
  if(error < 0 OR entered_ns = 0 OR first = 0, -1, entered_ns - first) AS late_ns, if(gpu_ns = 0, -1, gpu_ns) AS took_ns
FROM (
  SELECT run, func, op_index, minIf(entered_ns, clock_error_ns >= 0 AND entered_ns != 0) AS first,
    groupArray(rank) AS ranks, groupArray(host) AS hosts, groupArray(entered_ns) AS times,
    groupArray(clock_error_ns) AS errors, groupArray(gpu_ns) AS lengths
  FROM @DB.ops FINAL WHERE day >= today() - @DAYS AND comms_id = toUInt64OrZero(@FIRST) AND comms_id != 0
  GROUP BY run, comm, kind, func, op_index
) ARRAY JOIN ranks AS rank, hosts AS host, times AS entered_ns, errors AS error, lengths AS gpu_ns
ORDER BY run, op_index, late_ns DESC, rank)sql";
inline constexpr FleetColumn kOpColumns[] = {
    {"run", kText, 2},       {"rank", kCount},         {"host", kText},    {"func", kText},
    {"op_index", kCount, 1}, {"entered_ns", kTime, 3}, {"late_ns", kSpan}, {"gpu_ns", kSpan}};

}  // namespace lockstep::store::clickhouse::questions
