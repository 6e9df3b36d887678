// SPDX-License-Identifier: Apache-2.0
// What docs/report-data.md says, as types; and where the data come from: the page itself, or data.json beside it.

/** The version of the data that this page knows. */
export const VERSION = 3;

export type Maybe = number | null;

/** Something that is not known as a whole: why, and what would change it. */
export interface Missing {
  missing: string;
}

export interface Finding {
  id: string;
  class: string;
  severity: string;
  statement: string;
  ranks: number[];
  hosts: string[];
  who: { rank: Maybe; host: string | null; pid: Maybe; device: Maybe; pci: string | null; text: string }[];
  comm: string | null;
  func: string | null;
  op_index: Maybe;
  operation: string | null;
  since: Maybe;
  effect: { value: number; unit: string; low: Maybe; high: Maybe } | null;
  evidence: string[];
  advice: string;
  next: string[];
  needed_evidence: string;
  sources: string[];
}

export interface Diagnosis {
  verdict: Finding | null;
  findings: Finding[];
}

export interface Run {
  title: string;
  paths: string[];
  begin: string | null;
  begin_ns: string | null;
  length_ns: Maybe;
  least_length_ns: Maybe;
  made: string;
  evidence: { source: string; sentence: string; processes: Maybe; ops: Maybe; first_ns: Maybe; last_ns: Maybe }[];
  main: Maybe;
  seen: string[];
  not_seen: string[];
  alive: string;
}

/** Processes that stand out because a finding names them: not those of a finding that names most of the run. */
export function accused(report: Report): Set<number> {
  const most = Math.max(2, report.who.rank.length / 2);
  const cards = known(report.verdict)?.cards ?? [];
  return new Set(cards.flatMap((card, position) => (report.diagnosis.findings[position]?.severity !== 'note' && card.who.length <= most ? card.who : [])));
}

/** How many hosts the recording tells apart by their names. */
export function hostCount(report: Report): number {
  return new Set(report.hosts.map((host) => host.name).filter((name) => name !== '')).size;
}

export interface Who {
  rank: Maybe[];
  host: number[];
  pid: number[];
  device: Maybe[];
  name: string[];
  text: string[];
}

export interface Host {
  name: string;
  boot_id: string;
  who: number[];
  reference: boolean;
  aligned: boolean;
  offset_ns: Maybe;
  half_width_ns: Maybe;
  contradictions: number;
}

export interface Comm {
  name: string;
  text: string;
  show: string | null;
  id: string;
  ranks: number;
  nodes: Maybe;
  present: number;
  matched: Maybe;
  unmatched: unknown;
  ops: number;
  declared: boolean;
  waiting_ns: Maybe;
  moving_ns: Maybe;
  blamed_ns: Maybe;
}

export interface Card {
  title: string;
  what: string | null;
  class: string;
  effect: string | null;
  comm: Maybe;
  operation: Maybe;
  who: number[];
  /** Who wait until the record ends. */
  waiting: number[];
  rows: number[];
  at_ns: Maybe;
}

export interface VerdictPage {
  state: 'healthy' | 'problem' | 'cannot tell';
  headline: string;
  finding: Maybe;
  cards: Card[];
  losses: { text: string; count: number; stage: string; kind: string; source: string; who: number[] }[];
  lost_events: number;
}

export interface LatenessRow {
  label: string;
  who: Maybe;
  ranks: string;
  of: number;
  named: boolean;
  aligned: boolean;
  /** Of a group; a rank's is in `totals`. */
  total?: { ops: number; timed: number; waiting_ns: Maybe; moving_ns: Maybe; blamed_ns: Maybe; late_p50_ns: Maybe; late_p99_ns: Maybe };
  waiting_ns: Maybe[];
  late_ns: Maybe[];
  blamed_ns: Maybe[];
  ops: Maybe[];
  late_min_ns?: Maybe[];
  late_max_ns?: Maybe[];
  waiting_min_ns?: Maybe[];
  waiting_max_ns?: Maybe[];
  worst?: Maybe[];
}

/** The worst operations of cells, as lists of equal length. */
export interface Drill {
  row: number[];
  column: number[];
  comm: number[];
  op_index: number[];
  who: Maybe[];
  late_ns: Maybe[];
  waiting_ns: Maybe[];
  at_ns: Maybe[];
  operation: Maybe[];
}

/** A counter of a host's links or GPUs in the columns of the heat map. */
export interface LinkRow {
  host: string;
  device: string;
  counter: string;
  unit: string;
  kind: 'fault' | 'gauge' | 'traffic';
  severity: 'note' | 'warning' | 'critical' | null;
  says: string | null;
  aligned: boolean;
  total: Maybe;
  at_least: boolean;
  values: Maybe[];
}

export interface LatenessPage {
  columns: { count: number; begin_ns: number; width_ns: number };
  times: string;
  compared: number;
  rows: LatenessRow[];
  /** By position in `who`. */
  totals: { ops: number[]; timed: number[]; waiting_ns: Maybe[]; moving_ns: Maybe[]; blamed_ns: Maybe[]; late_p50_ns: Maybe[]; late_p99_ns: Maybe[] };
  drill: Drill;
  marks: { number: number; at_ns: number }[];
  links: { rows: LinkRow[]; omitted: number; hint: string | null };
  notes: string[];
}

export interface OperationRanks {
  who: Maybe[];
  comm_rank: number[];
  state: string[];
  called_ns: Maybe[];
  enqueued_ns: Maybe[];
  launched_ns: Maybe[];
  gpu_start_ns: Maybe[];
  gpu_end_ns: Maybe[];
  arrival_ns: Maybe[];
  late_ns: Maybe[];
  waiting_ns: Maybe[];
  moving_ns: Maybe[];
  clock_error_ns: Maybe[];
  gpu_error_ns: Maybe[];
  gpu_source: (string | null)[];
  aligned: number[];
  named: number[];
}

export interface Operation {
  comm: number;
  op_index: number;
  func: string;
  kind: string;
  title: string;
  open: boolean;
  datatype: string | null;
  count: Maybe;
  size_bytes: Maybe;
  algo: string | null;
  proto: string | null;
  channels: Maybe;
  root: Maybe;
  why: string[];
  findings: number[];
  begin_ns: number;
  length_ns: Maybe;
  last_arrival_ns: Maybe;
  lost_ns: Maybe;
  busbw_gbps: Maybe;
  called: number;
  ranks: OperationRanks;
  omitted: number;
  rest: { waiting_ns: Maybe[] | null; late_ns: Maybe[] | null; moving_ns: Maybe[] | null } | null;
}

export interface OperationsPage {
  total: number;
  list: Operation[];
  notes: string[];
}

export interface Rate {
  comm: number;
  func: string;
  algo: string | null;
  proto: string | null;
  ranks: number;
  hosts: Maybe;
  pairs: boolean;
  size_from_bytes: number;
  size_to_bytes: number;
  ops: number;
  uncertain: number;
  algbw_gbps: Maybe;
  busbw_gbps: Maybe;
  busbw_low_gbps: Maybe;
  busbw_high_gbps: Maybe;
  of_best: Maybe;
  ceiling_gbps: Maybe;
  link: string | null;
  error: Maybe;
  finding: Maybe;
  slowest: { op_index: number; busbw_gbps: number; at_ns: Maybe; operation: Maybe } | null;
}

export interface BandwidthPage {
  rates: Rate[];
  fits: { comm: number; func: string; sizes: number; alpha_ns: number; alpha_error_ns: Maybe; beta_gbps: Maybe; beta_low_gbps: Maybe; beta_high_gbps: Maybe }[];
  matched: number;
  untimed: number;
  omitted: number;
  notes: string[];
}

export interface Edge {
  from: number;
  to: number;
  /** null: a log tells of it, and not of which communicator. */
  comm: Maybe;
  transport: string | null;
  via: string | null;
  gdr: boolean | null;
  channels: Maybe;
  bytes: Maybe;
  rate_gbps: Maybe;
  wait_ns: Maybe;
  slow: Maybe;
  source: string;
}

export interface TopologyComm {
  comm: number;
  name: string;
  nodes: Maybe;
  members: Maybe[];
  rings: { channels: number[]; order: number[] }[];
  trees: { channels: number[]; up: Maybe[] }[];
}

export interface TopologyPage {
  comms: TopologyComm[];
  edges: Edge[];
  rings_missing: string | null;
  omitted: number;
  notes: string[];
}

export interface Pair {
  source: number;
  target: number;
  comm: Maybe;
  transfers: number;
  bytes: number;
  gpu_wait_ns: Maybe;
  peer_wait_ns: Maybe;
  send_wait_ns: Maybe;
  receive_wait_ns: Maybe;
  flush_wait_ns: Maybe;
  rate_gbps: Maybe;
  sending_p50_ns: Maybe;
  sending_p99_ns: Maybe;
  transport: string | null;
  finding: Maybe;
}

export interface NetworkPage {
  axis: { label: string; who: Maybe; of: number }[];
  pairs: Pair[];
  by: string;
  omitted: number;
  notes: string[];
}

export interface SplitEntries {
  number: number[];
  steps: number[];
  begin_ns: Maybe[];
  length_ns: Maybe[];
  computing_ns: Maybe[];
  hidden_ns: Maybe[];
  exposed_ns: Maybe[];
  copying_ns: Maybe[];
  idle_ns: Maybe[];
}

export interface SplitAverage {
  who: number;
  steps: number;
  whole: boolean;
  length_ns: Maybe;
  computing_ns: Maybe;
  hidden_ns: Maybe;
  exposed_ns: Maybe;
  copying_ns: Maybe;
  idle_ns: Maybe;
}

export interface StepsPage {
  source: string;
  period_ops: Maybe;
  /** As `lockstep summary` has them; of the steps that the program marks or that its operations repeat in. */
  figures: { p50_ns: Maybe; p99_ns: Maybe; exposed_p50_ns: Maybe; exposed_p99_ns: Maybe; exposed_at_most_p50_ns: Maybe; exposed_at_most_p99_ns: Maybe };
  list: { number: number[]; steps: number[]; begin_ns: Maybe[]; length_ns: Maybe[]; lost_ns: Maybe[]; worst: Maybe[] };
  split: Missing | { rows: { label: string; who: Maybe; ranks: string; of: number; entries: SplitEntries }[]; average: SplitAverage[]; omitted: number };
  notes: string[];
}

/** As lists, by position in `who`; `texts` holds what they say once. */
export interface ProcessList {
  gpu_model: Maybe[];
  pci: Maybe[];
  nccl: Maybe[];
  mode: Maybe[];
  argv: Maybe[];
  liveness: number[];
  closed: number[];
  first_ns: Maybe[];
  last_ns: Maybe[];
  heartbeat_ns: Maybe[];
  /** What it was in when its record ends, and for how long. */
  open: Maybe[];
  open_ns: Maybe[];
  ops: number[];
  lost: number[];
  comms: number[];
  named: number[];
}

export interface LossRow {
  who: Maybe;
  stage: string;
  kind: string;
  count: number;
  detail: string | null;
  source: string | null;
}

export interface ProcessesPage {
  /** Lockstep wrote their files: only then are `closed` and `mode` known. */
  captured: boolean;
  list: ProcessList | null;
  texts: string[];
  losses: LossRow[];
  notes: string[];
}

/** A text of a process, or null if it has none. */
export function processText({ list, texts }: ProcessesPage, key: 'gpu_model' | 'pci' | 'nccl' | 'mode' | 'argv' | 'liveness' | 'open', who: number): string | null {
  const place = list?.[key][who];
  return place === undefined || place === null ? null : texts[place] ?? null;
}

export interface ComparedRun {
  path: string;
  evidence: string;
  processes: number;
  steps_by: string;
  lost_events: number;
  losses: string[];
}

/** A ratio of run B to run A, as docs/compare.md describes it. */
export interface ComparedRow {
  metric: string;
  label: string;
  repeats: boolean;
  steps_a: number;
  steps_b: number;
  a_gbps: Maybe;
  b_gbps: Maybe;
  a_ns: Maybe;
  b_ns: Maybe;
  ratio: Maybe;
  low: Maybe;
  high: Maybe;
  change: 'worse' | 'better' | 'none' | 'cannot tell';
  cost_ns: Maybe;
  since: { from_begin: boolean; step: number; until_step: Maybe } | null;
  reason: string | null;
}

export interface ComparisonPage {
  a: ComparedRun;
  b: ComparedRun;
  verdict: { state: string; headline: string };
  tested: number;
  least_change: number;
  least_steps: number;
  rows: ComparedRow[];
  omitted: number;
  notes: string[];
}

export interface Report {
  version: number;
  tool: { name: string; version: string };
  live: boolean;
  refresh_ns: Maybe;
  run: Run;
  diagnosis: Diagnosis;
  who: Who;
  hosts: Host[];
  comms: Comm[];
  verdict: VerdictPage | Missing;
  lateness: LatenessPage | Missing;
  operations: OperationsPage | Missing;
  bandwidth: BandwidthPage | Missing;
  topology: TopologyPage | Missing;
  network: NetworkPage | Missing;
  steps: StepsPage | Missing;
  processes: ProcessesPage | Missing;
  comparison?: ComparisonPage;
}

export function isMissing(page: object): page is Missing {
  return 'missing' in page;
}

/** What a page holds, or null if it is missing. */
export function known<Page extends object>(page: Page | Missing): Page | null {
  return isMissing(page) ? null : page;
}

const PAGES = ['verdict', 'lateness', 'operations', 'bandwidth', 'topology', 'network', 'steps', 'processes'];

function check(value: unknown): Report {
  if (typeof value !== 'object' || value === null) throw new Error('The data of this report is not an object. Write the report again.');
  const report = value as Report;
  if (report.version !== VERSION) {
    throw new Error(`The data has version ${String(report.version)}; this page reads version ${VERSION}. Use a page and data from the same version of lockstep.`);
  }
  const absent = [...PAGES, 'run', 'diagnosis', 'who', 'hosts', 'comms'].filter((key) => typeof (value as Record<string, unknown>)[key] !== 'object');
  if (absent.length > 0) throw new Error(`The data of this report lacks ${absent.join(', ')}. Write the report again.`);
  report.diagnosis ??= { verdict: null, findings: [] };
  return report;
}

let size = 0;

/** Of the data that the page has, as they came. */
export function dataBytes(): number {
  return size;
}

function parse(text: string): unknown {
  size = new Blob([text]).size;
  return JSON.parse(text);
}

/** What `lockstep report` wrote into the page, or what it serves beside it. */
export async function load(): Promise<Report> {
  const inside = parse(document.getElementById('lockstep-data')?.textContent ?? 'null');
  return inside === null ? fetchReport() : check(inside);
}

export async function fetchReport(): Promise<Report> {
  if (location.protocol === 'file:') throw new Error('This file holds no data. `lockstep report RUN -o report.html` writes a page with data in it.');
  const answer = await fetch('data.json', { cache: 'no-store' });
  if (!answer.ok) throw new Error(`data.json: the server answered ${answer.status}.`);
  return check(parse(await answer.text()));
}
