import { h, icon } from '../dom';
import { some } from '../format';
import type { Report } from '../report';
import { checkedElement } from './checked';

/** What the panel's verdict has besides: what a check found, of how many calls the time is, how long a loop took, that the run was the first. */
export interface MoreOfVerdict {
  checked: typeof checkedElement;
  calls(report: Report): HTMLElement | null;
  /** One below the other. */
  notes(report: Report): HTMLElement[];
}

export const moreOfVerdict: MoreOfVerdict = {
  checked: checkedElement,
  calls: ({ clusters }) => {
    const calls = clusters.reduce((most, cluster) => Math.max(most, cluster.calls), 0);
    const title = 'The time above is of all of them; Compare and What-if tell of one call';
    return calls > 1 ? h('span', { class: 'jl-muted', title }, `this run: ${some(calls, 'call')}`) : null;
  },
  notes: ({ verdict, cell }) =>
    verdict.notes
      .filter(note => note && !cell.running)
      .map(note => h('p', { class: 'jl-first-run jl-note' }, icon('clock'), h('span', {}, note)))
};
