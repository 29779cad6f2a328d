import { copyLine, h, icon, iconButton, on } from './dom';
import { fileName, lineRanges } from './format';
import type { KernelAccess } from './kernel';
import type { CellState } from './model';
import type { Report } from './report';
import { Section, type SectionContext, type SectionView } from './section';
import { SECTIONS, TITLES } from './sections';
import { Selection } from './selection';
import { watchTheme } from './theme';
import { VerdictView } from './verdict/view';

/** All that the panel is told. */
export interface PanelState {
  notebook: string;
  /** Undefined where nothing is known of a cell. */
  cell: CellState | undefined;
  /** Whether the kernel has jitlab loaded; null while nobody knows, and for an output that needs no kernel. */
  loaded: boolean | null;
  /** The cell's source as it stands now; null where it can't have changed. */
  source: string[] | null;
  /** Another cell of the notebook that has a report. */
  other: { id: string; title: string; lead: string } | null;
  pinned: boolean;
}

export interface PanelActions {
  /** The kernel that made the report that is shown; null: a saved report, or no kernel. */
  readonly kernel: KernelAccess | null;
  goTo(cell: string, line?: number): void;
  togglePin(): void;
  /** Gives the keyboard back to the notebook. */
  leave(): void;
}

/** The whole panel: head, verdict, sections, and what it says when there is nothing to show. */
export class PanelView {
  readonly element: HTMLElement;

  /** Without `actions` it is an output in a notebook: no head, and only the verdict is open. */
  constructor(
    host: HTMLElement,
    private readonly actions: PanelActions | null
  ) {
    const context: SectionContext = {
      selection: this.selection,
      get kernel() {
        return actions?.kernel ?? null;
      },
      jump: title => {
        this.jump(title);
      },
      goToLine: (file, line) => {
        this.goToLine(file, line);
      }
    };
    this.parts = SECTIONS.map(({ title, table, make }) => {
      const section = new Section(title, { open: actions !== null && title === 'Clusters', table });
      return { section, view: make(section, context) };
    });
    this.sections = this.parts.map(({ section }) => section);
    this.verdict = new VerdictView(title => {
      this.jump(title);
    });
    this.element = h(
      'div',
      { class: `jl ${actions ? 'jl-panel' : 'jl-output'}`, role: 'region', 'aria-label': 'jitlab' },
      this.bar,
      this.head,
      this.notice,
      this.message,
      this.verdict.element,
      this.sections.map(section => section.element),
      this.live
    );
    host.append(this.element);
    for (const section of this.sections) {
      section.changed = () => {
        this.schedule();
      };
    }
    this.ends = [
      watchTheme(() => {
        this.schedule();
      }),
      this.selection.changed.connect(() => {
        this.linked = true;
        this.schedule();
      })
    ];
    this.observer = new ResizeObserver(() => {
      this.schedule();
    });
    this.observer.observe(this.element);
    on(this.element, {
      keydown: event => {
        this.onKey(event);
      },
      pointerdown: () => {
        this.pressed = true;
      }
    });
    // Also where the pointer has left the panel meanwhile; the click comes right after.
    const release = (): void => {
      if (this.pressed) {
        this.pressed = false;
        this.schedule();
      }
    };
    for (const name of ['pointerup', 'pointercancel', 'blur']) {
      window.addEventListener(name, release);
      this.ends.push(() => {
        window.removeEventListener(name, release);
      });
    }
  }

  show(state: PanelState): void {
    if (state.notebook !== this.state?.notebook) {
      this.keepSections(state.notebook);
    }
    this.state = state;
    this.schedule();
  }

  dispose(): void {
    this.observer.disconnect();
    for (const end of this.ends) {
      end();
    }
    for (const { view } of this.parts) {
      view.dispose?.();
    }
    cancelAnimationFrame(this.frame);
    this.element.remove();
  }

  /** Events may come by the thousand; the panel draws once a frame at most. */
  private schedule(): void {
    if (!this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.render();
      });
    }
  }

  private render(): void {
    const { state } = this;
    const width = this.element.clientWidth;
    const selects = this.linked && state === this.shown && width === this.width;
    if (!state || width === 0 || (this.pressed && !selects)) {
      return; // what is being pressed stays where it is: a click needs the element that it began on
    }
    if (selects) {
      // Only what is pointed at has changed.
      this.linked = false;
      for (const { view } of this.parts) {
        view.render?.();
      }
      return;
    }
    this.linked = false;
    this.shown = state;
    this.width = width;
    const cell = state.cell;
    const report = cell?.report ?? null;
    Object.assign(this.element.dataset, {
      cell: report?.cell.id ?? '',
      origin: cell?.origin ?? '',
      running: String(cell?.running ?? false),
      events: String(cell?.events ?? 0)
    });
    this.bar.hidden = !cell?.running;
    this.element.classList.toggle('jl-previous', cell?.origin === 'previous');
    this.renderHead(state, report);
    this.renderNotice(state, report);
    this.renderMessage(state, report);
    const showReport = report !== null && report.cell.error === null;
    const hasFigures = report !== null && (showReport || report.ops.length + report.statements.length > 0);
    this.verdict.element.hidden = !hasFigures;
    for (const section of this.sections) {
      section.element.hidden = !hasFigures;
    }
    if (report && cell && hasFigures) {
      this.selection.show(report);
      this.verdict.show(report, width);
      this.openFirst(state.notebook, report);
      for (const { view } of this.parts) {
        view.show(report, width, cell);
      }
      this.announce(report, cell.running);
    }
  }

  private renderHead(state: PanelState, report: Report | null): void {
    this.head.hidden = this.actions === null;
    const { actions } = this;
    if (!actions) {
      return;
    }
    const events = state.cell?.events ?? 0;
    const status = state.cell?.running
      ? `running${events ? `, ${events.toLocaleString('en-US')} events` : ''}`
      : { live: '', previous: 'previous kernel', saved: 'saved' }[state.cell?.origin ?? 'live'];
    const key = [report?.cell.title, state.notebook, status, state.pinned].join('|');
    if (key === this.headShown) {
      return; // keeps the focus on its buttons
    }
    this.headShown = key;
    const pin = iconButton('pin', state.pinned ? 'Unpin this cell (P)' : 'Pin this cell (P)', () => {
      actions.togglePin();
    });
    pin.setAttribute('aria-pressed', String(state.pinned));
    this.head.replaceChildren(
      h('b', {}, report?.cell.title ?? 'jitlab'),
      h('span', { class: 'jl-muted jl-grow' }, state.notebook),
      h('span', { class: 'jl-muted jl-status' }, status),
      ...(report ? [pin] : [])
    );
  }

  private renderNotice(state: PanelState, report: Report | null): void {
    const edited = report && state.source ? editedLines(report.cell.source, state.source) : [];
    const text =
      state.cell?.origin === 'previous'
        ? 'From before the restart. Run the cell to measure again.'
        : edited.length
          ? `Compiled from an older version of this cell; ${differ(edited)}.`
          : '';
    this.notice.hidden = text === '';
    if (this.notice.textContent !== text) {
      this.notice.replaceChildren(icon('clock'), h('span', {}, text));
    }
  }

  private renderMessage(state: PanelState, report: Report | null): void {
    const key = [
      report?.cell.error,
      state.cell?.refusal,
      state.cell?.running,
      state.loaded,
      state.other?.id,
      report === null,
      state.other?.lead
    ].join('|');
    this.message.hidden = report !== null && report.cell.error === null;
    if (this.message.hidden || key === this.messageShown) {
      this.messageShown = key;
      return;
    }
    this.messageShown = key;
    this.message.replaceChildren(...this.messageOf(state, report));
  }

  private messageOf(state: PanelState, report: Report | null): HTMLElement[] {
    if (report?.cell.error) {
      return errorElements(report.cell.error);
    }
    if (state.cell?.refusal) {
      return [h('b', {}, 'This report can’t be shown'), h('div', { class: 'jl-muted' }, state.cell.refusal)];
    }
    if (state.cell?.running) {
      return [
        h('b', {}, 'Running'),
        h('div', { class: 'jl-muted' }, 'Figures appear as soon as something is compiled.')
      ];
    }
    const last = this.lastReport(state);
    if (state.loaded === false) {
      return [
        h('b', {}, 'This kernel has not loaded jitlab'),
        h('div', { class: 'jl-muted' }, 'Run this once. Reports saved in the notebook open without it.'),
        copyLine('%load_ext jitlab'),
        ...last
      ];
    }
    return [
      h('b', {}, 'Nothing compiled in this cell'),
      h(
        'div',
        { class: 'jl-muted' },
        'It has not run under jitlab. Put this in its first line, or decorate a function with @jl.function.'
      ),
      copyLine('%%jit'),
      ...last
    ];
  }

  private lastReport(state: PanelState): HTMLElement[] {
    const { other } = state;
    if (!other) {
      return [];
    }
    const link = on(h('button', { type: 'button', class: 'jl-link' }, `${other.title}, ${other.lead}`), {
      click: () => {
        this.actions?.goTo(other.id);
      }
    });
    return [h('div', { class: 'jl-note' }, 'Last report in this notebook: ', link)];
  }

  /** At most one message a run, when it has ended. */
  private announce(report: Report, running: boolean): void {
    const text = `${report.cell.title}: ${report.verdict.lead}`;
    if (!running && this.actions && this.live.textContent !== text) {
      this.live.textContent = text;
    }
  }

  private onKey(event: KeyboardEvent): void {
    const { actions } = this;
    if (!actions) {
      return;
    }
    if (event.altKey && /^Digit[1-9]$/.test(event.code)) {
      this.jump(TITLES[Number(event.code.slice(5)) - 1] ?? '');
    } else if (event.key === 'Escape') {
      if (!this.selection.clear()) {
        actions.leave();
      }
    } else if (event.key.toLowerCase() === 'p' && !event.ctrlKey && !event.metaKey && !event.altKey) {
      actions.togglePin();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private jump(title: string): void {
    const section = this.sections.find(candidate => candidate.title.toLowerCase() === title.toLowerCase());
    if (section) {
      section.open = true;
    }
    const element = section?.element ?? this.verdict.element;
    element.scrollIntoView({ block: 'start' });
    element.querySelector<HTMLElement>('button')?.focus({ preventScroll: true });
  }

  /** `file` is as the report's positions name it; what is no cell of this notebook can't be gone to. */
  private goToLine(file: string, line: number): void {
    const report = this.state?.cell?.report;
    if (report && this.actions && (fileName(file) === report.cell.title || file === '')) {
      this.actions.goTo(report.cell.id, line);
    }
  }

  /** Besides what is always open at first: the section that *Do next* speaks of, once a notebook. */
  private openFirst(notebook: string, report: Report): void {
    const asked = report.verdict.next?.section.toLowerCase();
    if (asked === undefined || !this.actions || this.opened.has(notebook)) {
      return;
    }
    this.opened.add(notebook);
    const section = this.sections.find(({ title }) => title.toLowerCase() === asked);
    if (section) {
      section.open = true;
    }
  }

  /** What was open is kept per notebook. */
  private keepSections(notebook: string): void {
    if (this.state) {
      this.kept.set(
        this.state.notebook,
        this.sections.map(section => section.open)
      );
    }
    this.kept.get(notebook)?.forEach((open, index) => {
      const section = this.sections[index];
      if (section && section.open !== open) {
        section.open = open;
      }
    });
  }

  private readonly bar = h('div', {
    class: 'jl-live',
    role: 'progressbar',
    'aria-label': 'The cell is running',
    hidden: true
  });
  private readonly head = h('header', { class: 'jl-head' });
  private readonly notice = h('div', { class: 'jl-notice', role: 'note', hidden: true });
  private readonly message = h('div', { class: 'jl-message', hidden: true });
  private readonly live = h('div', { class: 'jl-hidden', 'aria-live': 'polite' });
  private readonly selection = new Selection();
  private readonly verdict: VerdictView;
  private readonly parts: { section: Section; view: SectionView }[];
  private readonly sections: Section[];
  private readonly observer: ResizeObserver;
  private readonly ends: (() => void)[];
  private readonly opened = new Set<string>();
  private readonly kept = new Map<string, boolean[]>();
  private state: PanelState | null = null;
  private shown: PanelState | null = null;
  private width = 0;
  private linked = false;
  private pressed = false;
  private frame = 0;
  private headShown = '';
  private messageShown = '';
}

/** Lines of the source now that are not what was compiled. */
export function editedLines(compiled: readonly string[], now: readonly string[]): number[] {
  const count = Math.max(filled(compiled), filled(now));
  return Array.from({ length: count }, (_, index) => index + 1).filter(
    line => (compiled[line - 1] ?? '').trimEnd() !== (now[line - 1] ?? '').trimEnd()
  );
}

/** Lines up to the last that is not blank. */
function filled(source: readonly string[]): number {
  return source.findLastIndex(line => line.trim() !== '') + 1;
}

function differ(edited: readonly number[]): string {
  return edited.length === 1 ? `line ${edited[0]} differs` : `lines ${lineRanges(edited)} differ`;
}

/** jitlab's errors say what, where, why and what to try, each on a line of its own. */
function errorElements(error: string): HTMLElement[] {
  if (/^\w+$/.test(error)) {
    return [h('b', { class: 'jl-error' }, icon('no'), `The cell raised ${error}`)];
  }
  const [what = '', ...rest] = error.split('\n');
  const elements: HTMLElement[] = [h('b', { class: 'jl-error' }, icon('no'), what)];
  for (const line of rest) {
    const [, name, text = ''] = /^\s*(where|why|try):\s*(.*)$/.exec(line) ?? [];
    if (name === 'try') {
      elements.push(copyLine(text));
    } else if (name === 'where') {
      elements.push(h('code', {}, text));
    } else {
      elements.push(h('div', {}, name === 'why' ? text : line));
    }
  }
  return elements;
}
