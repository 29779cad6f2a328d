import { h, icon } from '../dom';
import { some } from '../format';
import type { Report } from '../report';
import { checkedElement } from './checked';

/** What the panel's verdict has besides: what a check found, of how many calls the time is, that the run was the first. */
export interface MoreOfVerdict {
  checked: typeof checkedElement;
  calls(report: Report): HTMLElement | null;
  first(report: Report): HTMLElement | null;
}

export const moreOfVerdict: MoreOfVerdict = {
  checked: checkedElement,
  calls: ({ clusters }) => {
    const calls = clusters.reduce((most, cluster) => Math.max(most, cluster.calls), 0);
    const title = 'The time above is of all of them; Compare and What-if tell of one call';
    return calls > 1 ? h('span', { class: 'jl-muted', title }, `this run: ${some(calls, 'call')}`) : null;
  },
  first: ({ verdict, cell }) =>
    verdict.firstRun && !cell.running
      ? h('p', { class: 'jl-first-run jl-note' }, icon('clock'), h('span', {}, verdict.firstRun.text))
      : null
};
