import { duration, fileName, lines, percent, some } from '../format';
import type { Report, Retrace } from '../report';

/** What the panel says of one cause: all retraces of one function for one argument are one entry. */
export interface Entry {
  title: string;
  cause: string;
  where: string;
  seconds: number | null;
  share: string;
  argument: string;
  before: string;
  after: string;
  more: number;
  text: string;
  fix: string | null;
  /** What the fix would have done to the recorded calls, "" when it was not replayed. */
  proof: string;
  count: number;
}

export interface Ledger {
  entries: Entry[];
  /** First traces: not retraces, but they cost time too. */
  warmUp: { title: string; seconds: number | null; text: string }[];
  lostSeconds: number;
}

const CAUSES: Record<string, string> = {
  python_value: 'a Python value',
  shape: 'a shape',
  rank: 'a number of axes',
  dtype: 'a dtype',
  structure: 'a structure',
  argument_type: 'another type',
  global: 'a global name',
  closure: 'a closure variable',
  aliasing: 'arguments that are one array',
  options: 'other options',
  redefined_function: 'a function that was defined again',
  cache_evicted: 'a trace that had made room'
};

/** Pure: retraces in, entries out, the most time lost first; first traces apart. */
export function ledgerOf(report: Report): Ledger {
  const groups = new Map<string, Retrace[]>();
  for (const retrace of report.retraces.filter(({ first }) => !first)) {
    const key = [retrace.function, retrace.cause, retrace.argument].join('\0');
    groups.set(key, [...(groups.get(key) ?? []), retrace]);
  }
  const lostSeconds = sum(report.retraces.filter(({ first }) => !first)) ?? 0;
  const whole = (report.verdict.seconds ?? 0) + lostSeconds;
  const entries = [...groups.values()].map(group => entryOf(group, whole, report.cell.title));
  return {
    entries: entries.sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0)),
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

/** A cell has a first trace for each of its pieces: they are one first call. */
function warmUpOf(first: readonly Retrace[]): Ledger['warmUp'] {
  return [...new Set(first.map(retrace => retrace.function))].map(title => {
    const same = first.filter(retrace => retrace.function === title);
    const pieces = same.length > 1 ? `captured in ${some(same.length, 'piece')}` : (same[0]?.text ?? '');
    return { title, seconds: sum(same), text: pieces };
  });
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
  const fixed = group.findLast(retrace => retrace.fix !== null);
  return {
    title: `${name} changed ${group.length === 1 ? 'once' : group.length === 2 ? 'twice' : `${group.length} times`}`,
    cause: CAUSES[first.cause] ?? first.cause.replaceAll('_', ' '),
    where: whereOf(group, title),
    seconds,
    share: seconds !== null && whole > 0 ? `${percent(seconds / whole)} of the time` : '',
    argument: name,
    before: first.before,
    after: first.after,
    more: group.length - 1,
    text: first.text,
    fix: fixed?.fix ?? null,
    proof: fixed?.proof ?? '',
    count: group.length
  };
}

function sum(retraces: readonly Retrace[]): number | null {
  const known = retraces.map(({ seconds }) => seconds).filter(seconds => seconds !== null);
  return known.length ? known.reduce((total, seconds) => total + seconds, 0) : null;
}
