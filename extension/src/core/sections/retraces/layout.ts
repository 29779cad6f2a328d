import { duration, fileName, lines, percent, some } from '../../base/format';
import { causeText, noFix, type Fix, type Message } from '../../base/messages';
import type { Position, Report, Retrace } from '../../report/report';
import { box, type Mark, type Picture, type Shape } from '../../base/shapes';

/** One changed leaf: what it was, and what it is. */
export interface LeafChange {
  argument: string;
  before: string;
  after: string;
}

/** Where time went while somebody waited. */
export interface Spent {
  step: string;
  seconds: number;
  mark: Mark;
}

/** What the panel says of one cause: all retraces of one function from one place for one argument are one entry. */
export interface Entry {
  title: string;
  cause: string;
  where: string;
  /** Where to go for it; null where the report has no line. */
  at: Position | null;
  /** "called from In [9], line 3" */
  site: string;
  seconds: number;
  share: string;
  changes: LeafChange[];
  /** Arguments and what they are. */
  same: (readonly [string, string])[];
  sameCount: number;
  spent: Spent[];
  /** "Traced again; nothing compiled." */
  did: string;
  /** "each trace ran once", or "". */
  badge: string;
  text: string;
  fix: Fix | null;
  /** What the fix would have done to the recorded calls, "" when it was not replayed. */
  proof: string;
  /** Where the fix is written, "" where it says so itself. */
  place: string;
  /** Why there is no fix; null where there is one. */
  unfixed: Message | null;
  /** The last change made it unnecessary: no other is needed. */
  isDone: boolean;
  count: number;
}

export interface Ledger {
  entries: Entry[];
  /** First traces: not retraces, but they cost time too. */
  warmUp: { title: string; seconds: number; text: string; spent: Spent[] }[];
  lostSeconds: number;
}

const STEPS: readonly (readonly [string, string, Mark])[] = [
  ['capture', 'capture', 'capture'],
  ['passes', 'passes', 'passes'],
  ['planning', 'planning', 'planning'],
  ['codegen', 'code', 'codegen']
];

/** Open, lined, full: as the timeline has them. */
export const STAGE_LOOKS = {
  capture: { ink: 'compile' },
  passes: { ink: 'compile', lines: 'M1.5 0v6M4.5 0v6' },
  planning: { ink: 'compile', lines: 'M0 1.5h6M0 4.5h6' },
  codegen: { ink: 'compile', ground: 'compile' }
} as const;

/** Pure: retraces in, entries out, the most time lost first; first traces apart. */
export function ledgerOf(report: Report): Ledger {
  const groups = new Map<string, Retrace[]>();
  for (const retrace of report.retraces.filter(({ first }) => !first)) {
    const { site } = retrace;
    const key = [retrace.function, site ? `${site.file}:${site.line}` : '', retrace.cause, retrace.argument].join('\0');
    groups.set(key, [...(groups.get(key) ?? []), retrace]);
  }
  const lostSeconds = sum(report.retraces.filter(({ first }) => !first));
  const whole = report.verdict.waited?.seconds ?? (report.verdict.runSeconds ?? 0) + lostSeconds;
  const entries = [...groups.values()].map(group => entryOf(group, whole, report.cell.title));
  return {
    entries: entries.sort((a, b) => b.seconds - a.seconds),
    warmUp: warmUpOf(report.retraces.filter(({ first }) => first)),
    lostSeconds
  };
}

export function ledgerSummary({ entries, lostSeconds }: Ledger): string {
  if (entries.length === 0) {
    return 'none after the first call';
  }
  const count = entries.reduce((total, entry) => total + entry.count, 0);
  return lostSeconds > 0 ? `${duration(lostSeconds)} lost` : some(count, 'retrace');
}

/** Pure: the parts of the time in a row. */
export function layoutSpent(spent: readonly Spent[], width: number): Picture {
  const whole = spent.reduce((total, { seconds }) => total + seconds, 0);
  const shapes: Shape[] = [];
  let x = 0;
  for (const { seconds, mark } of spent) {
    const wide = whole > 0 ? (seconds / whole) * width : 0;
    shapes.push(box(x, 0.5, Math.max(1, wide - 1.5), 12, { mark }));
    x += wide;
  }
  return { width, height: 14, shapes };
}

/** "capture 4.5 ms, passes 2.0 ms" */
export function spentText(spent: readonly Spent[]): string {
  return spent.map(({ step, seconds }) => `${step} ${duration(seconds)}`).join(', ');
}

/** A cell has a first trace for each of its pieces: they are one first call. */
function warmUpOf(first: readonly Retrace[]): Ledger['warmUp'] {
  return [...new Set(first.map(retrace => retrace.function))].map(title => {
    const same = first.filter(retrace => retrace.function === title);
    const pieces = same.length > 1 ? `traced in ${some(same.length, 'piece')}` : warmUpText(same[0]);
    return { title, seconds: sum(same), text: pieces, spent: spentOf(same) };
  });
}

/** Of a first call its heading says it. */
function warmUpText(first: Retrace | undefined): string {
  return first && first.cause !== 'first_call' ? first.text : '';
}

/** Lines of the cell itself, else of where the function stands. */
function whereOf(group: readonly Retrace[], title: string): string {
  const positions = group.flatMap(retrace => retrace.lines);
  const file = fileName(positions[0]?.file ?? '');
  const where = lines(positions.map(position => position.line));
  return where && file && file !== title ? `${file}, ${where}` : where;
}

function entryOf(group: readonly Retrace[], whole: number, title: string): Entry {
  const [first] = group as readonly [Retrace, ...Retrace[]];
  const seconds = sum(group);
  const name = first.argument || first.function;
  const fixed = group.findLast(retrace => retrace.fix);
  const others = first.changes.filter(([, argument]) => argument !== first.argument && argument !== '');
  return {
    title: `${name} changed ${group.length === 1 ? 'once' : group.length === 2 ? 'twice' : `${group.length} times`}`,
    cause: causeText(first.cause),
    where: whereOf(group, title),
    at: first.lines.find(({ line }) => line > 0) ?? null,
    site: siteOf(first.site),
    seconds,
    share: whole > 0 ? `${percent(seconds / whole)} of this run` : '',
    changes: [
      { argument: name, before: first.before, after: first.after },
      ...others.map(([, argument, before, after]) => ({ argument, before, after }))
    ],
    same: first.same,
    sameCount: Math.max(first.sameCount, first.same.length),
    spent: spentOf(group),
    did: didOf(group),
    badge: badgeOf(group),
    text: first.text,
    fix: fixed?.fix ?? null,
    proof: fixed?.proof ?? '',
    place: fixed?.place ?? '',
    unfixed: fixed ? null : unfixedOf(group),
    isDone: Boolean(group.at(-1)?.done),
    count: group.length
  };
}

function siteOf(site: Position | null): string {
  return site && site.line > 0 ? `called from ${fileName(site.file)}, line ${site.line}` : '';
}

/** What had to be done again. */
function didOf(group: readonly Retrace[]): string {
  if (group.every(({ spent }) => spent.length === 0)) {
    return ''; // a report that does not say
  }
  const compiled = group.reduce((total, retrace) => total + retrace.compiled, 0);
  return compiled > 0
    ? `Traced again; ${some(compiled, 'cluster')} compiled again.`
    : 'Traced again; nothing compiled.';
}

function unfixedOf(group: readonly Retrace[]): Message {
  return group.at(-1)?.done ?? noFix(group.some(({ compiled }) => compiled > 0));
}

/** A trace that was called once has cost its capture for one call. */
function badgeOf(group: readonly Retrace[]): string {
  const once = group.filter(({ calls }) => calls === 1).length;
  return once === 0 ? '' : once === group.length ? 'each trace ran once' : `${once} of ${group.length} traces ran once`;
}

function spentOf(group: readonly Retrace[]): Spent[] {
  return STEPS.map(([key, step, mark]) => {
    const parts = group.flatMap(({ spent }) => spent.filter(([name]) => name === key));
    return { step, mark, seconds: parts.reduce((total, [, seconds]) => total + seconds, 0) };
  }).filter(({ seconds }) => seconds > 0);
}

function sum(retraces: readonly Retrace[]): number {
  return retraces.reduce((total, { seconds }) => total + seconds, 0);
}
