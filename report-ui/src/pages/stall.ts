// SPDX-License-Identifier: Apache-2.0
// What a job hangs in: an operation that a member has not called, and who waits in it until the record ends.
import { known, type Operation, type Report } from '../data';

export interface Stall {
  operation: number;
  title: string;
  length_ns: number;
  waiting: ReadonlySet<number>;
  absent: ReadonlySet<number>;
}

/** The open operation that a finding names, else the one that most wait in; null where nobody waits. */
export function stallOf(report: Report): Stall | null {
  const list = known(report.operations)?.list ?? [];
  const end = report.run.length_ns ?? report.run.least_length_ns;
  const members = (operation: Operation, states: readonly string[]): Set<number> =>
    new Set(operation.ranks.who.filter((who, at): who is number => who !== null && states.includes(operation.ranks.state[at] ?? '')));
  let best: Stall | null = null;
  let most = -1;
  list.forEach((operation, position) => {
    if (!operation.open || end === null || end <= operation.begin_ns) return;
    const waiting = members(operation, ['called', 'running']);
    const weight = waiting.size + (operation.findings.length > 0 ? 1e6 : 0);
    if (waiting.size === 0 || weight <= most) return;
    most = weight;
    best = { operation: position, title: operation.title, length_ns: end - operation.begin_ns, waiting, absent: members(operation, ['not called']) };
  });
  return best;
}
