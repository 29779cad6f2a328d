import { copyLine, h, icon } from '../base/dom';
import { editsOf } from '../report/edits';
import { duration, lines, some } from '../base/format';
import { isOpen, waitsText, type Job, type KernelAccess } from '../report/kernel';
import type { PanelActions, PanelState } from './panel-state';
import type { Report } from '../report/report';

/** One dashed line above the figures: that they are old, or of an older version of the cell. */
export class Notice {
  readonly element = h('div.jl-notice', { role: 'note', hidden: true });

  /** `showVersion` shows the source that was compiled; null where no section has it. */
  constructor(private readonly showVersion: (() => void) | null) {}

  show(state: PanelState, report: Report | null): void {
    const edited = report && state.source ? editsOf(report.cell.source, state.source).differ : [];
    const previous = state.cell?.origin === 'previous';
    const text = noticeText(state, edited);
    this.element.hidden = text === '';
    if (this.shown !== text) {
      this.shown = text;
      const { showVersion } = this;
      const link =
        !previous && edited.length > 0 && showVersion
          ? h('button.jl-link', { onclick: showVersion }, 'Show that version')
          : null;
      this.element.replaceChildren(icon('clock'), h('span.jl-grow', text), ...(link ? [link] : []));
    }
  }

  private shown = '';
}

/** Pure: why the figures are not of a run of now, and what makes them so; "" where they are. */
export function noticeText(
  { cell, loaded, notebook, instead, saved = '' }: PanelState,
  edited: readonly number[]
): string {
  const again = loaded === false ? 'Run %load_ext jitlab, then the cell' : 'Run the cell';
  if (cell?.origin === 'previous') {
    return `From before the restart. ${again} to measure again.`;
  }
  if (edited.length > 0) {
    return `Compiled from an older version of this cell; ${differ(edited)}.`;
  }
  const isSaved = cell?.origin === 'saved' && cell.report !== null && notebook !== '';
  if (isSaved && instead) {
    return `The active cell has no saved report. This is the one of ${cell.report?.cell.title ?? ''}. ${saved}`.trim();
  }
  return isSaved && loaded === false ? `${saved} ${again} to measure anew.` : saved;
}

const NO_REPORT = 'This cell has no saved report';

/** Pure: what a user who has never seen jitlab does first, by what is there: a notebook, a kernel, jitlab in it. */
export function howToBegin({ loaded, notebook, isSaved, other }: PanelState): {
  title: string;
  text: string;
  code: string;
} {
  if (notebook === '') {
    return {
      title: 'No notebook is open',
      text: 'Open one. This panel then shows what jitlab compiles in it, what not, why, and what it costs.',
      code: ''
    };
  }
  const saved = 'Reports saved in the notebook open without it.';
  if (loaded !== true) {
    return {
      title:
        isSaved && other
          ? NO_REPORT
          : loaded === false
            ? 'This kernel has not loaded jitlab'
            : 'No kernel is connected',
      text: `${loaded === false ? 'Run' : 'Choose a kernel, then run'} this once in a cell. ${saved}`,
      code: '%load_ext jitlab'
    };
  }
  return {
    title: 'Nothing compiled in this cell',
    text: 'jitlab is loaded (%load_ext jitlab). It compiles a cell that begins with this line, or a function under @jl.function (import jitlab as jl), once it runs.',
    code: '%%jit'
  };
}

/** What stands in place of the figures while there are none: how to begin, what is wrong, or that it runs. */
export class Message {
  readonly element = h('div.jl-message', { hidden: true });

  constructor(private readonly actions: PanelActions | null) {}

  show(state: PanelState, report: Report | null): void {
    this.element.hidden = report !== null && report.cell.error === null;
    const { cell, loaded, other, isSaved, notebook } = state;
    const ofCell = [report === null, report?.cell.error, cell?.refusal, cell?.running];
    const key = [...ofCell, loaded, other?.id, other?.lead, isSaved, notebook === ''].join('|');
    const shown = this.element.hidden ? '' : key;
    if (shown !== this.shown) {
      this.shown = shown;
      this.element.replaceChildren(...(shown === '' ? [] : this.elements(state, report)));
    }
  }

  private elements(state: PanelState, report: Report | null): HTMLElement[] {
    if (report?.cell.error) {
      return errorElements(report.cell.error);
    }
    if (state.cell?.refusal) {
      return [h('b', 'This report can’t be shown'), h('div.jl-muted', state.cell.refusal)];
    }
    if (state.cell?.running) {
      return [h('b', 'Running'), h('div.jl-muted', 'Figures appear as soon as something is compiled.')];
    }
    const { title, text, code } = howToBegin(state);
    return [h('b', title), h('div.jl-muted', text), ...(code ? [copyLine(code)] : []), ...this.lastReport(state)];
  }

  private lastReport({ other, isSaved }: PanelState): HTMLElement[] {
    if (!other) {
      return [];
    }
    const link = h('button.jl-link', { onclick: () => this.actions?.goTo(other.id) }, `${other.title}, ${other.lead}`);
    return [h('div.jl-note', `${isSaved ? 'Nearest' : 'Last'} report in this notebook: `, link)];
  }

  private shown = '';
}

/** Another cell runs: what is here stays usable, what is to be measured waits. And the panel's own measurements. */
export class Work {
  readonly element = h('div.jl-work', { hidden: true });

  /** `kinds`: of the jobs that no section shows. */
  constructor(private readonly shows: (kind: string) => boolean) {}

  show(state: PanelState, report: Report | null, kernel: KernelAccess | null): void {
    clearTimeout(this.timer);
    const jobs =
      report && kernel
        ? kernel.jobs.of(report.cell.id).filter(job => job.kind !== 'compile' && this.shows(job.kind))
        : [];
    const latest = jobs.filter((job, index) => isOpen(job) || (index === jobs.length - 1 && job.error !== null));
    const ran = state.busy ? Math.floor((Date.now() - state.busy.since) / 1000) : 0;
    const busy = state.busy && report && ran >= SAID_AFTER_S ? state.busy : null;
    if (state.busy) {
      this.timer = setTimeout(() => this.show(state, report, kernel), 1000);
    }
    const seconds = `${busy?.title ?? ''} has run for ${ran < 60 ? `${ran} s` : `${Math.floor(ran / 60)} min ${ran % 60} s`}.`;
    const { underway } = state;
    this.element.hidden = !busy && !underway && latest.length === 0;
    const key = JSON.stringify([busy?.title, underway?.title, latest]);
    if (key !== this.shown) {
      this.shown = key;
      this.element.replaceChildren(
        ...(underway ? [underwayElement(underway)] : []),
        ...(busy ? [row('clock', this.running, ' What is shown here stays usable; new measurements wait.')] : []),
        ...latest.map(job => jobElement(job, kernel))
      );
    }
    if (this.running.textContent !== seconds) {
      this.running.textContent = seconds; // alone, so that nothing else is drawn each second
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }

  private readonly running = h('b');
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown = '';
}

const SAID_AFTER_S = 2;

/** A first run waits for the compiler. */
function underwayElement({ title, cancel }: NonNullable<PanelState['underway']>): HTMLElement {
  const stop =
    cancel && h('button.jl-button', { onclick: cancel, title: 'Leaves the rest of this run to Python' }, 'Cancel');
  return h('div.jl-job', { role: 'status' }, icon('wait'), h('div.jl-grow', h('b', `${title}.`)), stop);
}

/** A measurement that waits, runs or failed. */
function jobElement(job: Job, kernel: KernelAccess | null): HTMLElement {
  const said =
    job.state === 'queued'
      ? waitsText(job)
      : job.state === 'running'
        ? job.progress
          ? `${job.progress.done} of ${some(job.progress.total, 'run')}.`
          : 'Runs.'
        : (job.error ?? '');
  const about = isOpen(job) && job.estimateSeconds !== null ? ` About ${duration(job.estimateSeconds)}.` : '';
  const cancel = (): void => void kernel?.request({ want: 'cancel', job: job.id }).catch(() => undefined); // it has ended meanwhile
  return h(
    'div.jl-job',
    icon(job.error ? 'no' : 'wait'),
    h('div.jl-grow', h('b', job.title), h('div', said + about)),
    isOpen(job) && kernel && h('button.jl-button', { onclick: cancel }, 'Cancel')
  );
}

function row(name: 'clock', ...text: (string | Node)[]): HTMLElement {
  return h('div.jl-job', icon(name), h('div.jl-grow', text));
}

function differ(edited: readonly number[]): string {
  return `${lines(edited)} ${edited.length === 1 ? 'differs' : 'differ'}`;
}

/** jitlab's errors say what, where, why and what to try, each on a line of its own. */
function errorElements(error: string): HTMLElement[] {
  if (/^\w+$/.test(error)) {
    return [
      h('b.jl-error', icon('no'), error === 'KeyboardInterrupt' ? 'You stopped the cell' : `The cell raised ${error}`)
    ];
  }
  const [what = '', ...rest] = error.split('\n');
  const elements: HTMLElement[] = [h('b.jl-error', icon('no'), what)];
  for (const line of rest) {
    const [, name, text = ''] = /^\s*(where|why|try):\s*(.*)$/.exec(line) ?? [];
    if (name === 'try') {
      elements.push(copyLine(text));
    } else if (name === 'where') {
      elements.push(h('code', text));
    } else {
      elements.push(h('div', name === 'why' ? text : line));
    }
  }
  return elements;
}
