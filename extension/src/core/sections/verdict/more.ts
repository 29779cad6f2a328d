import { flowOf } from '../clusters/flow';
import { h, icon } from '../../base/dom';
import { duration, shareText, some } from '../../base/format';
import type { KernelAccess } from '../../report/kernel';
import { lineId } from '../../report/links';
import type { Report } from '../../report/report';
import { checkedElement } from './checked';
import { Measure } from './measure';

/** What the panel's verdict has besides: what a check found, of how many calls the time is, which lines are slowest, how long a loop took, that the run was the first. */
export interface MoreOfVerdict {
  checked: typeof checkedElement;
  calls(report: Report): HTMLElement | null;
  /** `pin` lights lines wherever they are shown. */
  slowest(report: Report, pin: (id: string) => void): HTMLElement | null;
  /** What memory traffic there was; goes to the arrays that are stored. */
  moved(text: string, jump: (section: string, of: string) => void): HTMLElement;
  /** One below the other. */
  notes(report: Report): HTMLElement[];
  /** What the kernel can find out when it is asked to; null where nothing. */
  measure(report: Report): HTMLElement | null;
}

/** `kernel` is the one that can measure, while there is one. */
export function moreOfVerdict(kernel: () => KernelAccess | null): MoreOfVerdict {
  const measure = new Measure(kernel);
  return { ...MORE, measure: report => measure.show(report) };
}

const MORE: Omit<MoreOfVerdict, 'measure'> = {
  checked: checkedElement,
  calls: report => {
    const calls = callsOf(report);
    const title = 'The time above is of all of them; Compare and What-if show that of one call';
    return calls > 1 ? h('span.jl-muted', { title }, `this run: ${some(calls, 'call')}`) : null;
  },
  slowest: ({ verdict }, pin) => {
    if (!verdict.slowest) {
      return null;
    }
    const { text, file, lines, seconds, share, kernels } = verdict.slowest;
    const said = `slowest: ${text}, ${duration(seconds)}`;
    const title =
      kernels.length && lines.length > 1
        ? 'A kernel is one loop over all its lines: none of them has a time of its own'
        : 'The slowest of all, and its part';
    return h(
      'button.jl-fact',
      { title, onclick: () => pin(lineId(file, lines[0] ?? 0)) },
      icon('clock'),
      said + shareText(share)
    );
  },
  moved: (text, jump) => {
    const title = 'Counted by the cost model: each element once';
    return h('button.jl-fact.jl-muted', { title, onclick: () => jump('clusters', 'memory') }, text);
  },
  notes: ({ verdict, cell }) =>
    [
      verdict.repeated?.text,
      verdict.firstRun?.text,
      typeof verdict.repeated?.deviation === 'number' && verdict.runSeconds !== null && !verdict.waited
        ? `The run of the cell itself took ${duration(verdict.runSeconds)}.`
        : ''
    ]
      .filter(note => note && !cell.running)
      .map(note => h('p.jl-first-run.jl-note', icon('clock'), h('span', note)))
};

/** Pure: how often what was called most was called, of traces that came to the same plan all of them. */
export function callsOf(report: Report): number {
  const nodes = flowOf(report).parts.flatMap(part => part.nodes);
  return nodes.reduce((most, node) => Math.max(most, node.calls), 0);
}
