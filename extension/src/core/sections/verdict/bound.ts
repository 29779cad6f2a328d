/** What the time is spent on when nothing is left to do that the compiler knows of. */
import { lines, percent } from '../../base/format';
import type { Report } from '../../report/report';

/** A kernel that reaches less of its peak is not as fast as it could be. */
const LOW = 0.25;
/** From this share of quick code on, what a kernel reaches says nothing of the code that later runs have. */
const QUICK = 0.1;

/** What the time is spent on, and whether that is all there is to say. */
export interface Bound {
  isDone: boolean;
  text: string;
}

export function boundOf({ isDone, text }: Bound): string {
  return isDone ? `Nothing left to do: ${text}` : text;
}

/** What the time is spent on when nothing is left to do that the compiler knows of; what raised or ran as Python is left. */
export function whatBounds(report: Report): Bound {
  const timed = report.kernels.filter(kernel => kernel.seconds !== null);
  const top = timed.reduce((a, b) => ((b.seconds ?? 0) > (a?.seconds ?? -1) ? b : a), timed[0]);
  const whole = report.summary?.kernelSeconds ?? timed.reduce((sum, kernel) => sum + (kernel.seconds ?? 0), 0);
  const { retraces, host, firstRun } = report.verdict;
  if (!top || whole <= 0 || retraces > 0 || host > 0 || (firstRun?.quickShare ?? 0) >= QUICK) {
    return { isDone: false, text: '' };
  }
  const share = percent((top.seconds ?? 0) / whole);
  const verb = top.bound === 'compute' ? 'computes at' : 'uses memory at';
  const peak = top.ofPeak === null ? '' : ` and ${verb} ${percent(top.ofPeak)} of its peak`;
  const kernel = report.clusters.length > 1 ? `${top.name} of ${top.cluster}` : top.name;
  const name = top.lines.length ? `${kernel} (${lines(top.lines)})` : kernel;
  const done = report.cell.error === null && report.statements.length === 0 && (top.ofPeak ?? 1) >= LOW;
  const text = `${name} takes ${share} of the time${report.statements.length ? ' of what is compiled' : ''}${peak}.`;
  return { isDone: done, text };
}
