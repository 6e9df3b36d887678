// SPDX-License-Identifier: Apache-2.0
// The questions as SQL that servers from 18.16 on understand, which has no parameters: @DB is the database,
// @DAYS a number. There a lambda may use a column only where the query around it does, too, and ARRAY JOIN
// comes before JOIN; hence the many levels. Joins are ALL, with keys that the right side has once: what ANY
// leaves of the left side's rows depends on the server's release.
#include "store/fleet_questions.h"

#include <algorithm>
#include <map>

#include "store/clickhouse/questions/questions_about_one.h"
#include "store/clickhouse/wire/sql_text.h"

namespace lockstep::store {
namespace {

using enum FleetColumn::Kind;
using namespace clickhouse::questions;

// A run's blame is shared among its hosts. If none of them were different, each would be as likely to have
// any of the shares: of a host's share y, E exp(l y) is the mean of exp(l y) over the hosts of the run. So
// the product of exp(l y) / E exp(l y) over the runs of a host, from the last one backwards, is a martingale
// with mean 1, and exceeds 1 / c anywhere on its way with a chance of at most c (Ville), whatever the shares
// look like. That is asked for six l, each host and each kind of blame, hence `tests`. Where the product is
// highest, the change began; all that is within e^3 of it is nearly as likely.
constexpr std::string_view kHostsSql =
    R"sql(SELECT host, what, toUInt64(length(tail)) AS runs, arraySum(tail) / length(tail) AS share,
  arraySum(arraySlice(ps, high)) / length(tail) AS expected,
  least(1, tests * exp(-best)) AS chance, times[low - 1] AS after_ns, times[high] AS until_ns,
  lost_ns / 3.6e12 AS lost_hours
FROM (
  SELECT host, what, best, ps, times, tests, lost_ns, high, arrayFirstIndex(s -> s >= best - 3, scores) AS low,
    arraySlice(ys, high) AS tail
  FROM (
    SELECT host, what, best, scores, ys, ps, times, tests, lost_ns,
      1 + length(scores) - arrayFirstIndex(s -> s >= best - 3, arrayReverse(scores)) AS high
    FROM (
      SELECT host, what, argMax(scores, top) AS scores, max(top) AS best, any(ys) AS ys, any(ps) AS ps,
        any(times) AS times, any(lost_ns) AS lost_ns
      FROM (
        SELECT host, what, l, scores, arrayReduce('max', scores) AS top, ys, ps, times, lost_ns
        FROM (
          SELECT host, what, l, sum(lost) AS lost_ns, arraySort(groupArray(started)) AS times,
            arraySort((v, t) -> t, groupArray(y), groupArray(started)) AS ys, arraySort((v, t) -> t,
            groupArray(p), groupArray(started)) AS ps,
            arrayReverse(arrayCumSum(arrayReverse(arraySort((v, t) -> t, groupArray(gain),
            groupArray(started))))) AS scores
          FROM (
            SELECT host, what, l, y, 1 / length(hosts) AS p, lost, started, l * y - level AS gain
            FROM (
              SELECT run, what, l, log(avg(exp(l * y))) AS level, min(first) AS started,
                groupArray(host) AS hosts, groupArray(y) AS ys, groupArray(lost) AS losts
              FROM (
                SELECT run, 'late' AS what, host, first, lost, one / total AS y
                FROM (
                  SELECT run, min(begin) AS first, groupArray(host) AS hosts,
                    groupArray(blamed / processes) AS ones, sum(blamed / processes) AS total,
                    groupArray(blamed) AS losts
                  FROM (
                    SELECT run, host, sum(blamed_ns) AS blamed, uniqExact(process) AS processes,
                      toInt64(min(toUnixTimestamp(minute))) * 1000000000 AS begin
                    FROM @DB.rollups FINAL WHERE day >= today() - @DAYS GROUP BY run, host
                  ) GROUP BY run HAVING total > 0
                ) ARRAY JOIN hosts AS host, ones AS one, losts AS lost
                UNION ALL
                SELECT run, what, host, first, toUInt64(0) AS lost, toFloat64(has(named, host)) AS y
                FROM (
                  SELECT run, what, named, hosts, first FROM (
                    SELECT run, class AS what, groupUniqArray(one) AS named
                    FROM @DB.findings FINAL ARRAY JOIN hosts AS one
                    WHERE day >= today() - @DAYS AND severity != 'note'
                    GROUP BY run, class
                  ) ALL INNER JOIN (
                    SELECT run, hosts, started_ns AS first FROM @DB.runs FINAL WHERE day >= today() - @DAYS
                  ) USING run
                ) ARRAY JOIN hosts AS host
              ) ARRAY JOIN [1, 2, 4, 8, 16, 32] AS l GROUP BY run, what, l
            ) ARRAY JOIN hosts AS host, ys AS y, losts AS lost
          ) GROUP BY host, what, l
        )
      ) GROUP BY host, what
    ) CROSS JOIN (
      SELECT 6 * uniqExact(one) * (1 + (SELECT uniqExact(class) FROM @DB.findings
      WHERE day >= today() - @DAYS)) AS tests
      FROM @DB.runs FINAL ARRAY JOIN hosts AS one WHERE day >= today() - @DAYS
    )
  )
) WHERE chance < 0.01 AND host != '' ORDER BY chance, best DESC, host)sql";

// The same function and size on the same kind of GPU, in strata of equal numbers of ranks and nodes. A run is
// one observation: the logarithm of its busbw. One that is three standard deviations, by the median one, from
// the others of its stratum and version had another cause, as had one whose diagnosis names a link: a bad
// link is often as old as a version, and reserved hosts meet it again and again. The difference of two
// versions is the mean over the strata, weighted as least squares do, with one variance for all; Student's t
// becomes a normal z by Wallace's formula, as the server has erfc and no t. Of all pairs and sizes together,
// one in a hundred fleets without a difference shows any. Less than 1 % is not worth a word.
constexpr std::string_view kVersionsSql =
    R"sql(SELECT gpu_model, func, size_bits, older, newer, exp(delta) - 1 AS change, exp(delta - reach) - 1 AS low,
  exp(delta + reach) - 1 AS high, older_runs, newer_runs, least(1, tests * erfc(z / sqrt(2))) AS chance, since
FROM (
  SELECT tests, r.1 AS gpu_model, r.2 AS func, r.3 AS size_bits, r.4 AS older, r.5 AS newer, r.6 AS delta,
    r.7 AS older_runs, r.8 AS newer_runs, r.9 AS since, r.10 AS z, r.11 AS reach
  FROM (
    SELECT count() AS tests, groupArray((gpu_model, func, size_bits, older, newer, delta, older_runs,
      newer_runs, since, z, reach)) AS answers
    FROM (
      SELECT gpu_model, func, size_bits, older, newer, delta, older_runs, newer_runs, since,
        (8 * freedom + 1) / (8 * freedom + 3) AS bend,
        bend * sqrt(freedom * log(1 + delta * delta / error / freedom)) AS z,
        sqrt(error * freedom * (exp(pow(2.576 / bend, 2) / freedom) - 1)) AS reach
      FROM (
        SELECT gpu_model, func, size_bits, older, newer,
          sum(weight * (newer_mean - older_mean)) / sum(weight) AS delta, sum(older_n) AS older_runs,
          sum(newer_n) AS newer_runs,
          min(newer_first) AS since, older_runs + newer_runs - 2 * count() AS freedom,
          sum(older_squares + newer_squares) / freedom / sum(weight) AS error
        FROM (
          SELECT gpu_model, func, size_bits, older, older_n, older_mean, older_squares, newer, newer_n,
            newer_mean, newer_squares, newer_first, older_n * newer_n / (older_n + newer_n) AS weight
          FROM (
            SELECT gpu_model, func, size_bits, older, older_n, older_mean, older_squares, versions, counts,
              means, squares, firsts
            FROM (
              SELECT gpu_model, func, size_bits, groupArray(nccl_version) AS versions, groupArray(n) AS counts,
                groupArray(mean) AS means, groupArray(square) AS squares, groupArray(first) AS firsts
              FROM (
                SELECT gpu_model, func, size_bits, ranks, nodes, nccl_version, count() AS n, avg(x) AS mean,
                  varPop(x) * count() AS square, min(begin) AS first
                FROM (
                  SELECT gpu_model, func, size_bits, ranks, nodes, nccl_version, x, begin
                  FROM (
                    SELECT gpu_model, func, size_bits, quantileExact(0.5)(abs(x - middle)) AS deviation,
                      groupArray(ranks) AS all_ranks, groupArray(nodes) AS all_nodes,
                      groupArray(nccl_version) AS all_versions, groupArray(middle) AS middles,
                      groupArray(x) AS values, groupArray(begin) AS times
                    FROM (
                      SELECT gpu_model, func, size_bits, ranks, nodes, nccl_version, groupArray(x) AS xs,
                        groupArray(begin) AS begins, quantileExact(0.5)(x) AS middle
                      FROM (
                        SELECT gpu_model, func, size_bits, ranks, nodes, nccl_version, run,
                          log(sum(bus_bytes) / sum(moving_ns)) AS x,
                          toInt64(min(toUnixTimestamp(minute))) * 1000000000 AS begin
                        FROM @DB.rollups FINAL
                        WHERE day >= today() - @DAYS AND nccl_version > 0 AND moving_ns > 0 AND bus_bytes > 0
                          AND run NOT IN (
                            SELECT run FROM @DB.findings FINAL WHERE day >= today() - @DAYS AND severity != 'note'
                              AND class IN ('slow-link', 'slow-nic', 'transport-error')
                          )
                        GROUP BY gpu_model, func, size_bits, ranks, nodes, nccl_version, run
                      ) GROUP BY gpu_model, func, size_bits, ranks, nodes, nccl_version HAVING count() > 3
                    ) ARRAY JOIN xs AS x, begins AS begin GROUP BY gpu_model, func, size_bits
                  ) ARRAY JOIN all_ranks AS ranks, all_nodes AS nodes, all_versions AS nccl_version,
                    middles AS middle, values AS x, times AS begin
                  WHERE abs(x - middle) <= 3 * 1.4826 * deviation
                ) GROUP BY gpu_model, func, size_bits, ranks, nodes, nccl_version
              ) GROUP BY gpu_model, func, size_bits, ranks, nodes
            ) ARRAY JOIN versions AS older, counts AS older_n, means AS older_mean, squares AS older_squares
          ) ARRAY JOIN versions AS newer, counts AS newer_n, means AS newer_mean, squares AS newer_squares,
            firsts AS newer_first
          WHERE older < newer
        ) GROUP BY gpu_model, func, size_bits, older, newer HAVING freedom > 1 AND error > 0
      )
  )) ARRAY JOIN answers AS r
) WHERE chance < 0.01 AND (low > 0.01 OR high < -0.01) ORDER BY chance, gpu_model, func, size_bits, older, newer)sql";

// A run is one observation, however many operations it had: a long run must not outvote short ones.
constexpr std::string_view kBusbwSql =
    R"sql(SELECT gpu_model, func, size_bits, ranks, nodes, nccl_version, count() AS runs,
  quantileExact(0.5)(rate) AS middle, quantileExact(0.1)(rate) AS low, quantileExact(0.9)(rate) AS high
FROM (
  SELECT gpu_model, func, size_bits, ranks, nodes, nccl_version, run, sum(bus_bytes) / sum(moving_ns) AS rate
  FROM @DB.rollups FINAL WHERE day >= today() - @DAYS AND moving_ns > 0 GROUP BY gpu_model, func, size_bits,
    ranks, nodes, nccl_version, run
) GROUP BY gpu_model, func, size_bits, ranks, nodes, nccl_version ORDER BY gpu_model, func, size_bits, ranks,
  nodes, nccl_version)sql";

// Waiting comes from rollups, hours from processes. Runs without rollups are in neither, so the share stays
// right.
constexpr std::string_view kLostSql =
    R"sql(SELECT toString(day) AS date, count() AS runs, sum(had) / 3.6e12 AS gpu_hours,
  sum(waited) / 3.6e12 AS waited_hours, waited_hours / gpu_hours AS waited_share,
  sum(blamed) / 3.6e12 AS blamed_hours
FROM (
  SELECT run, day, had, waited, blamed FROM (
    SELECT run, sum(waited_ns) AS waited,
      sum(blamed_ns) AS blamed FROM @DB.rollups FINAL WHERE day >= today() - @DAYS GROUP BY run
  ) ALL INNER JOIN (
    SELECT run, day, sum(greatest(last_ns - first_ns,
      0)) AS had FROM @DB.processes FINAL WHERE day >= today() - @DAYS GROUP BY run, day
  ) USING run
) GROUP BY day ORDER BY day)sql";

// GPU-hours are processes times the run's length, as a process has one GPU nearly always.
constexpr std::string_view kVerdictsSql =
    R"sql(SELECT verdict, any(verdict_class) AS class, count() AS runs,
  runs / (SELECT count() FROM @DB.runs FINAL WHERE day >= today() - @DAYS) AS share,
  sum(processes * greatest(ended_ns - started_ns, 0)) / 3.6e12 AS gpu_hours, max(started_ns) AS last_ns
FROM @DB.runs FINAL WHERE day >= today() - @DAYS GROUP BY verdict ORDER BY runs DESC, verdict)sql";

// Once in many runs is chance: a host has to be named in two.
constexpr std::string_view kFindingsSql = R"sql(SELECT id, host, named AS runs, of_runs, first_ns, last_ns
FROM (
  SELECT id, host, uniqExact(run) AS named, min(started) AS first_ns, max(started) AS last_ns
  FROM (
    SELECT id, host, run, started FROM (
      SELECT id, host,
        run FROM @DB.findings FINAL ARRAY JOIN hosts AS host WHERE day >= today() - @DAYS AND severity != 'note'
    ) ALL INNER JOIN (SELECT run,
      started_ns AS started FROM @DB.runs FINAL WHERE day >= today() - @DAYS) USING run
  ) GROUP BY id, host HAVING named > 1
) ALL INNER JOIN (
  SELECT host,
    count() AS of_runs FROM @DB.runs FINAL ARRAY JOIN hosts AS host WHERE day >= today() - @DAYS GROUP BY host
) USING host ORDER BY named DESC, id, host)sql";

// In the order of the SELECTs: cells have no names in the answer, only places.
constexpr FleetColumn kHostColumns[] = {{"host", kText},
                                        {"what", kText},
                                        {"runs", kCount},
                                        {"share", kShare, 1},
                                        {"expected_share", kShare, 2},
                                        {"chance", kChance},
                                        {"changed_after_ns", kTime},
                                        {"changed_until_ns", kTime, 3},
                                        {"lost_hours", kHours}};
constexpr FleetColumn kVersionColumns[] = {{"gpu_model", kText},      {"func", kText},
                                           {"size_bits", kSize},      {"older", kVersion},
                                           {"newer", kVersion},       {"change", kShare},
                                           {"change_low", kShare, 1}, {"change_high", kShare, 1},
                                           {"older_runs", kCount, 3}, {"newer_runs", kCount, 3},
                                           {"chance", kChance},       {"newer_since_ns", kTime, 2}};
constexpr FleetColumn kBusbwColumns[] = {{"gpu_model", kText},    {"func", kText},
                                         {"size_bits", kSize},    {"ranks", kCount},
                                         {"nodes", kCount, 1},    {"nccl_version", kVersion},
                                         {"runs", kCount},        {"busbw", kRate},
                                         {"busbw_low", kRate, 2}, {"busbw_high", kRate, 2}};
constexpr FleetColumn kLostColumns[] = {{"day", kText},           {"runs", kCount},
                                        {"gpu_hours", kHours},    {"waited_hours", kHours},
                                        {"waited_share", kShare}, {"blamed_hours", kHours}};
constexpr FleetColumn kVerdictColumns[] = {{"verdict", kText}, {"class", kText},      {"runs", kCount},
                                           {"share", kShare},  {"gpu_hours", kHours}, {"last_ns", kTime}};
constexpr FleetColumn kFindingColumns[] = {{"id", kText},       {"host", kText},        {"runs", kCount},
                                           {"of_runs", kCount}, {"first_ns", kTime, 1}, {"last_ns", kTime}};

constexpr FleetQuestion kQuestions[] = {
    {"hosts", "hosts that are blamed over many runs more than chance explains, and since when",
     "no host stands out", kHostsSql, kHostColumns, true},
    {"versions", "NCCL versions whose bus bandwidth differs from an older one's, at equal shapes",
     "no version stands out", kVersionsSql, kVersionColumns, true},
    {"busbw", "bus bandwidth by shape and NCCL version: median, 10th and 90th percentile of runs",
     "no run has bandwidths", kBusbwSql, kBusbwColumns, true},
    {"lost", "GPU-hours that ranks waited for the last one, day by day", "no run has rollups", kLostSql,
     kLostColumns, true},
    {"verdicts", "runs by verdict", "no runs", kVerdictsSql, kVerdictColumns, false},
    {"findings", "findings that name a host in more than one run", "no finding occurs twice", kFindingsSql,
     kFindingColumns, false},
    {"links", "pairs of hosts whose link is named in more runs than chance explains", "no link stands out",
     kLinksSql, kLinkColumns, false},
    {"jobs", "runs that a host took part in, what they found on it, and what it cost them",
     "the host took part in no run", kJobsSql, kJobColumns, true, "host"},
    {"compare", "two runs: bus bandwidth and waiting for the last rank, by function and size",
     "not both runs are there, or they have nothing in common", kCompareSql, kCompareColumns, true, "runs"},
    {"op", "one operation on all ranks", "no operation has this id", kOpSql, kOpColumns, false, "comms-id"},
};

// Words that begin with @, each once replaced: what is put in their place may hold such words, too.
std::string replaced(std::string_view sql, const std::map<std::string_view, std::string>& words) {
  std::string text;
  while (!sql.empty()) {
    const auto word =
        std::find_if(words.begin(), words.end(), [&](const auto& of) { return sql.starts_with(of.first); });
    if (word == words.end()) {
      text += sql.front();
      sql.remove_prefix(1);
    } else {
      text += word->second;
      sql.remove_prefix(word->first.size());
    }
  }
  return text;
}

}  // namespace

std::span<const FleetQuestion> fleet_questions() { return kQuestions; }

std::string fleet_sql(const FleetQuestion& question, const std::string& database,
                      const FleetSubject& subject) {
  const auto name = [&](size_t i) {
    return clickhouse::literal(i < subject.names.size() ? std::string_view(subject.names[i])
                                                        : std::string_view());
  };
  // Parts that several places of a question share.
  const std::string pairs = replaced(question.sql, {{"@PAIRS", std::string(kNamedPairs)}});
  const std::string whole = replaced(pairs, {{"@LINKS", std::string(kNamedLinks)}});
  return replaced(whole, {{"@DAYS", std::to_string(subject.days)},
                          {"@DB", clickhouse::identifier(database)},
                          {"@FIRST", name(0)},
                          {"@SECOND", name(1)}}) +
         "\nLIMIT " + std::to_string(kMostFleetRows + 1);
}

}  // namespace lockstep::store
