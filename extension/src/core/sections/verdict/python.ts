import { firstLine } from '../clusters/words';
import { begun, duration, joined, sentence, some, whereOf } from '../../base/format';
import type { Report } from '../../report/report';

/**
 * What Python did that could have been compiled: calls for which it takes less time, a statement it ran, or a loop whose
 * iterations are its own.
 */
export interface PythonRow {
  what: string;
  where: string;
  why: string;
}

const MOST_ROWS = 3;

/** Pure: whether all that Python ran was its own, as a print is; what could not be captured was meant to be compiled. */
export function isPythons({ statements }: Report): boolean {
  return statements.every(({ reason }) => reason.code === 'effect' || reason.code === 'statement');
}

/** Pure: calls that ran as Python, the slowest statements and the longest loops, a few of each, and how many more there are. */
export function pythonRows(report: Report): { rows: PythonRow[]; more: string } {
  const { verdict } = report;
  const statements = verdict.statements > 0 ? report.statements : [];
  const slowest = [...statements].sort((a, b) => b.seconds - a.seconds).slice(0, MOST_ROWS);
  const longest = [...report.loops].sort((a, b) => b.iterations - a.iterations).slice(0, MOST_ROWS);
  const bySeconds = [...report.asPython].sort((a, b) => b.seconds - a.seconds);
  const others = bySeconds.slice(verdict.settled ? 1 : 0); // what took most is told of above
  const settled = others.slice(0, MOST_ROWS);
  const said = new Set<string>();
  const once = (why: string): string => (said.has(why) ? '' : (said.add(why), why));
  const rest = [
    [others.length - settled.length, 'more function'] as const,
    [Math.max(verdict.statements, statements.length) - slowest.length, 'more statement'] as const,
    [Math.max(verdict.loops, report.loops.length) - longest.length, 'more loop'] as const
  ].flatMap(([count, noun]) => (count > 0 ? [some(count, noun)] : []));
  return {
    rows: [
      ...settled.map(({ function: name, text, lines, seconds, calls }) => ({
        what: name,
        where: joined(', ', whereOf({ lines }), 'this run: Python', some(calls, 'call'), duration(seconds)),
        why: sentence(`It ${text}`)
      })),
      ...slowest.map(({ text, reason, lines, seconds, calls }) => ({
        what: firstLine(text),
        where: joined(
          ', ',
          whereOf({ lines }),
          `run by Python${calls > 1 ? ` ${calls} times` : ''}`,
          duration(seconds)
        ),
        why: once(begun(sentence(reason.text)))
      })),
      ...longest.map(({ text, reason, lines, iterations }) => ({
        what: firstLine(text),
        where: joined(', ', whereOf({ lines }), some(iterations, 'iteration'), 'one by one'),
        why: sentence(reason.text)
      }))
    ],
    more: rest.length ? `and ${rest.join(', ')}` : ''
  };
}
