import { h, icon, iconButton, refill } from '../base/dom';
import { duration, grouped, inCalls, joined, some } from '../base/format';
import { openMenu, type MenuItem } from '../base/popup';
import type { PanelActions, PanelState } from './panel-state';
import type { Report } from '../report/report';

/** What the head can do besides what the host lends it. */
export interface HeadActions {
  /** Opens the comparison with an earlier run. */
  compare: (run: number) => void;
  showKeys: () => void;
}

/** The panel's first row: which cell, which run, and what its state is. Drawn anew only when it says something else. */
export class Head {
  readonly element = h('div.jl-head');

  constructor(
    private readonly actions: PanelActions,
    private readonly own: HeadActions
  ) {}

  show(state: PanelState, report: Report | null): void {
    const { history } = report ?? { history: null };
    const status = statusOf(state);
    const runs =
      history?.runs.map(({ run, seconds, error }) => `${run} ${seconds ?? ''} ${error ?? ''}`).join(',') ?? '';
    const key = [titleOf(state), state.notebook, state.pinned, history?.run, runs].join('|');
    if (key !== this.shown) {
      this.shown = key;
      this.fill(state, report);
    }
    if (this.status.textContent !== status) {
      this.status.textContent = status;
      this.status.title = status;
    }
  }

  private fill(state: PanelState, report: Report | null): void {
    const focused = document.activeElement?.getAttribute('data-jl-head');
    const { actions } = this;
    refill(
      this.element,
      h('b.jl-cell-title', titleOf(state) ?? 'jitlab'),
      h('span.jl-muted.jl-grow', { title: state.notebook }, state.notebook),
      this.status,
      report && [this.runs(report), this.pin(state)],
      actions.main &&
        iconButton('main', actions.main.label, () => actions.main?.open(null), { 'data-jl-head': 'main' }),
      this.menu()
    );
    if (actions.main === undefined) {
      this.element.classList.add('jl-in-main');
    }
    if (focused) {
      this.element.querySelector<HTMLElement>(`[data-jl-head='${focused}']`)?.focus({ preventScroll: true });
    }
  }

  private runs(report: Report): HTMLElement | null {
    const { history } = report;
    if (!history || history.run < 1) {
      return null;
    }
    const open = (): void => {
      const most = this.actions.settings?.runs ?? 20;
      const earlier = history.runs.filter(({ run }) => run !== history.run).slice(-most);
      const items = earlier.reverse().map(({ run, seconds, calls, retraces, error }): MenuItem => {
        const said = error ? 'error' : seconds === null ? '' : duration(seconds) + inCalls(calls);
        return {
          label: `Compare with run ${run}`,
          note: joined(' · ', said, retraces ? some(retraces, 'retrace') : ''),
          run: () => this.own.compare(run)
        };
      });
      openMenu(button, 'Runs of this cell', items.length ? [KEPT, ...items] : ['No earlier runs.']);
    };
    const label = `Run ${history.run}. Compare with an earlier run`;
    const named = { 'data-jl-head': 'runs', ...CLOSED, 'aria-label': label, onclick: open };
    const button = h('button.jl-runs', named, `run ${history.run}`, icon('fold'));
    return h('span.jl-menu-place', button);
  }

  private pin({ pinned }: PanelState): HTMLElement {
    const more = { 'aria-pressed': String(pinned), 'data-jl-head': 'pin' };
    return iconButton('pin', `${pinned ? 'Unpin' : 'Pin'} this cell (P)`, () => this.actions.togglePin(), more);
  }

  private menu(): HTMLElement {
    const open = (): void => {
      const own = { label: 'Keys', note: '?', run: this.own.showKeys };
      openMenu(button, 'jitlab', [...(this.actions.menu?.() ?? []), own]);
    };
    const button = iconButton('more', 'More', open, { 'data-jl-head': 'menu', ...CLOSED });
    return h('span.jl-menu-place', button);
  }

  private readonly status = h('span.jl-muted.jl-status');
  private shown = '';
}

const KEPT = 'The last run is shown; of earlier ones the times are kept.';

/** A button whose menu is not open. */
const CLOSED = { 'aria-haspopup': 'menu', 'aria-expanded': 'false' };

/** The number that the notebook has now may be of a later run than a saved report: it names the cell alone. */
function titleOf({ cell }: PanelState): string | undefined {
  const title = cell?.report?.cell.title;
  return cell?.origin === 'saved' ? title?.replace('In ', 'Cell ') : title;
}

function statusOf(state: PanelState): string {
  const { cell, behind = 0, busy } = state;
  const events = cell?.events ?? 0;
  if (behind > 0) {
    return 'updating…';
  }
  if (cell?.running) {
    return `running${events ? `, ${grouped(events)} events` : ''}`;
  }
  const origin = { live: '', previous: 'previous kernel', saved: 'saved' }[cell?.origin ?? 'live'];
  return origin || (busy ? 'kernel busy' : '');
}
