// SPDX-License-Identifier: Apache-2.0
// What a job hangs in, as a finding tells it: who waits until the record ends, for how long, and whom they wait for.
import { known, type Finding, type Report } from '../data';
import { name } from '../format';

export interface Stall {
  /** "operation 1329 of mesh_dp:1 (its 1,295th AllReduce)" */
  title: string;
  /** A position in the list of operations. */
  operation: number | null;
  /** As the finding has it: of those who wait, the longest. */
  length_ns: number;
  waiting: ReadonlySet<number>;
  /** Whom the finding names, and who do not wait themselves. */
  absent: ReadonlySet<number>;
  /** Of them, and shorter. */
  says: readonly [string, string];
}

/** By the begin of a finding's id; the first that fits. */
const SAYS: readonly (readonly [string, string, string])[] = [
  ['never-joined.stopped', 'is stopped', 'stopped'], ['never-joined.finished', 'ended without it', 'ended'], ['never-joined', 'has not called it', 'not called'],
  ['joined-other-op', 'is in another operation', 'in another'], ['init-stuck', 'never joined', 'not joined'], ['rank-dead', 'is dead', 'dead'],
  ['rank-unreachable', 'is unreachable', 'unreachable'], ['too-many-failed', 'is gone', 'gone'],
];

/** What the verdict says; else what the first finding does that tells of ranks that wait. */
export function stallOf(report: Report): Stall | null {
  const page = known(report.verdict);
  if (!page) return null;
  const of = (finding: Finding | undefined, position: number): Stall | null => {
    const card = page.cards[position];
    if (!finding || !card || finding.severity === 'note' || card.waiting.length === 0 || finding.effect?.unit !== 'ns') return null;
    const waiting = new Set(card.waiting);
    const [, long, short] = SAYS.find(([begin]) => finding.id.startsWith(begin)) ?? ['', 'holds them up', 'holds up'];
    return {
      title: name(finding.operation ?? finding.comm ?? finding.class, 120), operation: card.operation, length_ns: finding.effect.value, waiting,
      absent: new Set(card.who.filter((who) => !waiting.has(who))), says: [long, short],
    };
  };
  const { findings } = report.diagnosis;
  const first = page.finding === null ? null : of(findings[page.finding], page.finding);
  return first ?? findings.map(of).find((stall) => stall !== null) ?? null;
}
