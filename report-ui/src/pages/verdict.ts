// SPDX-License-Identifier: Apache-2.0
// The first page: what is wrong, who, why we believe it, what to do; what was lost before anything else.
import { hostCount, isMissing, known, type Card, type Finding, type Report, type VerdictPage } from '../data';
import { h, type Child } from '../dom';
import { clockTime, count, name, plural, quantity, ranges } from '../format';
import { glance } from './glance';
import { command, facts, hostChip, link, missing, notes, panel, prose, whoChip, type Page, type View } from '../view';

const MOST_CHIPS = 16;
const SIGNS: Record<string, string> = { critical: '■', warning: '▲', note: '●' };

function severity(text: string): HTMLElement {
  const level = text in SIGNS ? text : 'note';
  return h('span', { class: `severity ${level}` }, h('span', { 'aria-hidden': 'true' }, `${SIGNS[level]} `), name(text));
}

/** Few events of many do not change what is said. */
function isHeavy(report: Report, page: VerdictPage): boolean {
  const ops = (known(report.processes)?.list?.ops ?? []).reduce((sum, of) => sum + of, 0);
  return page.lost_events > Math.max(1, ops / 100);
}

function losses(report: Report, page: VerdictPage): Child {
  if (page.losses.length === 0) return null;
  const [worst, ...others] = page.losses;
  if (!worst) return null;
  const heavy = isHeavy(report, page);
  const line = (loss: VerdictPage['losses'][number]): Child => [
    name(loss.text, 300),
    h('span', { class: 'quiet' }, ` (${name(loss.stage)}, ${name(loss.source)})`),
  ];
  return h('section', { class: `losses ${heavy ? 'heavy' : ''}`, 'aria-label': 'What was lost' },
    h('h2', {}, heavy ? '▲ Much was lost or is inexact: this report may be incomplete' : 'Lost'),
    h('ul', {}, h('li', {}, line(worst)), others.slice(0, 2).map((loss) => h('li', {}, line(loss)))),
    others.length > 2 ? h('details', { open: false }, h('summary', {}, `${plural(others.length - 2, 'other kind')}`), h('ul', {}, others.slice(2).map((loss) => h('li', {}, line(loss))))) : null,
    link('All losses, by process', 'processes'));
}

/** Who a finding names: links to their rows in time, and to the processes of their hosts. */
function blamed(report: Report, finding: Finding, card: Card | undefined): Child {
  const who = card?.who ?? [];
  const hosts = [...new Set(finding.hosts)];
  const known_ranks = new Set(who.map((position) => report.who.rank[position]));
  const unseen = finding.ranks.filter((rank) => !known_ranks.has(rank));
  if (who.length === 0 && unseen.length === 0 && hosts.length === 0) return h('span', { class: 'quiet' }, 'nobody in particular');
  return [
    who.slice(0, MOST_CHIPS).map((position) => whoChip(report, position)),
    who.length > MOST_CHIPS ? h('span', { class: 'quiet' }, `and ${count(who.length - MOST_CHIPS)} more: ranks ${ranges(finding.ranks)}`) : null,
    unseen.length > 0 ? h('span', { class: 'chip plain' }, `${unseen.length === 1 ? 'rank' : 'ranks'} ${ranges(unseen)} (no file)`) : null,
    hosts.slice(0, MOST_CHIPS).map((host) => {
      const position = report.hosts.findIndex((entry) => entry.name === host);
      return position < 0 ? h('span', { class: 'chip plain' }, name(host)) : hostChip(report, position);
    }),
    hosts.length > MOST_CHIPS ? h('span', { class: 'quiet' }, `and ${plural(hosts.length - MOST_CHIPS, 'more host')}`) : null,
  ];
}

function effect(finding: Finding): string | null {
  const told = finding.effect;
  if (!told) return null;
  const base = told.unit.startsWith('ns/') ? 'ns' : told.unit;
  const [low, high] = [quantity(told.low, base), quantity(told.high, base)];
  return quantity(told.value, told.unit) + (told.low !== null && told.high !== null && low !== high ? ` (${low} to ${high})` : '');
}

/** Whether the statement has told it, as it stands. */
function isStated(finding: Finding, fact: string): boolean {
  const { statement } = finding;
  for (let at = statement.indexOf(fact); at >= 0; at = statement.indexOf(fact, at + 1)) {
    // "2.5 s" is not in "12.5 s", nor "5 s".
    if (!/[\w.]/.test(statement[at - 1] ?? ' ') && !/\w/.test(statement[at + fact.length] ?? ' ')) return true;
  }
  return false;
}

/** Where the pages show what a finding says. */
function ways(view: View, finding: Finding, card: Card | undefined, position: number): Child[] {
  const { report } = view;
  const out: Child[] = [];
  const operation = card?.operation ?? null;
  if (operation !== null) out.push(link('Show the operation', 'operations', { op: operation }, 'button'));
  if (card && card.rows.length > 0) out.push(link('Show in time', 'lateness', { rank: card.who[0] ?? null, row: card.rows[0] ?? null }, 'button'));
  const topology = known(report.topology);
  if (topology?.edges.some((edge) => edge.slow === position)) out.push(link('Show the link', 'topology', { finding: position }, 'button'));
  const network = known(report.network);
  const pair = network?.pairs.findIndex((entry) => entry.finding === position) ?? -1;
  if (network && pair >= 0) out.push(link('Show its waits', 'network', { pair, comm: network.pairs[pair]?.comm }, 'button'));
  const bandwidth = known(report.bandwidth);
  if (bandwidth?.rates.some((rate) => rate.finding === position)) out.push(link('Show its bandwidth', 'bandwidth', { comm: finding.comm }, 'button'));
  if (finding.class === 'exposed-communication') out.push(link('Show the steps', 'steps', {}, 'button'));
  return out;
}

function card(view: View, finding: Finding, position: number, page: VerdictPage): HTMLElement {
  const { report } = view;
  const shown = page.cards[position];
  const where = finding.operation !== null ? name(finding.operation, 200)
    : finding.func === null ? null : [name(finding.func), finding.comm ? [' of ', name(finding.comm)] : null];
  const size = effect(finding) ?? shown?.effect ?? null;
  const evidence = finding.evidence.filter((fact) => !isStated(finding, fact));
  // Who reads this has the report.
  const next = finding.next.filter((text) => !text.startsWith('lockstep report '));
  const row = (key: string, value: Child, kind = ''): Child => (value === null ? null : [h('dt', {}, key), h('dd', { class: kind }, value)]);
  return h('article', { class: `card ${finding.severity in SIGNS ? finding.severity : 'note'}`, id: `finding-${position}`, 'data-finding': position },
    h('header', {}, position === page.finding && page.state === 'problem' ? null : severity(finding.severity), h('h2', {}, name(shown?.title ?? finding.class, 80)), h('code', { class: 'quiet' }, name(finding.id, 60))),
    // Of the verdict it stands above in large letters already.
    position === page.finding && page.headline === finding.statement ? null : h('p', { class: 'statement' }, name(finding.statement, 2000)),
    h('dl', { class: 'card-facts' },
      row('Who', blamed(report, finding, shown), 'who'),
      row('Where', where),
      row('Effect', size !== null && isStated(finding, size) ? null : size, 'effect'),
      row('Since', finding.since === null ? null : clockTime(finding.since)),
      row('Evidence', evidence.length === 0 ? null : h('ul', {}, evidence.map((text) => h('li', {}, name(text, 2000)))), 'evidence'),
      row('Do next', finding.advice === '' && next.length === 0 ? null : [
        prose(name(finding.advice, 2000)), next.map((text) => h('div', {}, command(text)))], finding.advice === '' ? '' : 'advice'),
      row('What would decide it', finding.needed_evidence === '' ? null : prose(name(finding.needed_evidence, 2000))),
      row('Evidence source', finding.sources.length === 0 ? null : finding.sources.map((source) => name(source)).join(', ')),
      shown?.what ? row('Means', h('span', { class: 'quiet' }, prose(name(shown.what.charAt(0).toUpperCase() + shown.what.slice(1), 1000)))) : null),
    view.printing ? null : h('div', { class: 'ways' }, ways(view, finding, shown, position)));
}

const STATES: Record<VerdictPage['state'], readonly [string, string]> = {
  healthy: ['✓', 'No problem'],
  problem: ['', ''],
  'cannot tell': ['?', 'Cannot tell'],
};

function draw(view: View): Child[] {
  const { report } = view;
  if (isMissing(report.verdict)) return [missing(report.verdict.missing)];
  const page = report.verdict;
  const { findings } = report.diagnosis;
  const main = page.finding === null ? undefined : findings[page.finding];
  const level = page.state === 'healthy' ? 'healthy' : page.state === 'cannot tell' ? 'unsure' : main && main.severity in SIGNS ? main.severity : 'note';
  const [sign, state] = STATES[page.state] ?? STATES['cannot tell'];
  const order = findings.map((_, position) => position);
  if (page.finding !== null) order.sort((a, b) => Number(b === page.finding) - Number(a === page.finding));
  const rest = order.filter((position) => position !== page.finding);
  const { run } = report;
  const hosts = hostCount(report);
  const seen = run.seen.filter((text) => !page.headline.endsWith(text));
  return [
    losses(report, page),
    h('section', { class: `verdict ${level}`, 'aria-label': 'Verdict' },
      h('p', { class: 'verdict-state' }, main && page.state === 'problem' ? severity(main.severity) : [h('span', { 'aria-hidden': 'true' }, `${sign} `), page.state === 'healthy' && isHeavy(report, page) ? 'No problem in what was recorded' : state]),
      h('h1', { class: page.headline.length > 220 ? 'long' : '', id: 'headline' }, name(page.headline, 2000))),
    page.finding === null ? glance(view) : null,
    order.length === 0 ? null : [
      page.finding === null ? null : card(view, findings[page.finding] as Finding, page.finding, page),
      rest.length > 0 ? h('h2', { class: 'section' }, page.finding === null ? 'Worth knowing' : 'Other findings') : null,
      rest.map((position) => card(view, findings[position] as Finding, position, page)),
    ],
    page.finding === null ? null : glance(view),
    panel('What was seen',
      facts([
        ...(report.who.rank.length > 0 ? [['Processes', count(report.who.rank.length)] as const] : []),
        ...(hosts > 0 ? [['Hosts', count(hosts)] as const] : []),
        ...(report.comms.length > 0 ? [['Communicators', count(report.comms.length)] as const] : []),
      ]),
      seen.length > 0 ? notes(seen) : null,
      run.alive ? h('p', {}, name(run.alive, 1000)) : null,
      run.not_seen.length > 0 ? [h('h3', {}, 'Not seen, and what would show it'), notes(run.not_seen)] : null,
      report.run.evidence.length > 1 ? [h('h3', {}, 'Evidence, most trusted first'), notes(report.run.evidence.map((entry) => `${entry.source}: ${entry.sentence}`))] : null),
  ];
}

export const verdict: Page = { id: 'verdict', title: 'Verdict', details: [], draw };

/** For the heading of the browser's window. */
export function verdictTitle(report: Report): string {
  const page = known(report.verdict);
  const main = page && page.finding !== null ? report.diagnosis.findings[page.finding] : undefined;
  return main ? main.class : page?.state === 'healthy' ? 'no problem found' : 'report';
}

