import { MainLayout } from './arrange';
import { addIcons, consume, h, on } from '../base/dom';
import { some } from '../base/format';
import { Head } from './head';
import { KeyHelp } from './help';
import { PANEL_ICONS } from '../base/icons';
import { isMade, keyName, keyOf, press, type Key } from './keys';
import type { CellState } from '../report/model';
import { OpenSections } from './open-sections';
import type { PanelActions, PanelOptions, PanelState } from './panel-state';
import type { Report } from '../report/report';
import { LateView, Section, type SectionContext, type SectionView } from './section';
import { SECTIONS } from './sections';
import { Selection } from './selection';
import { DEFAULTS } from './settings';
import { Message, Notice, Work } from './states';
import { watchTheme } from '../base/theme';
import { moreOfVerdict } from '../sections/verdict/more';
import { VerdictView } from '../sections/verdict/view';
import { Card } from '../sections/whatif/card';

addIcons(PANEL_ICONS);

/** What a fact of the verdict speaks of, where that is a part of the clusters. */
const IN_CLUSTERS = new Map([
  ['kernel', '[data-kind=kernel]'],
  ['memory', '.jl-details']
]);

/** The whole panel: head, verdict, sections, and what it says when there is nothing to show. */
export class PanelView {
  readonly element: HTMLElement;

  /** Without `actions` it is an output in a notebook: no head, and only the verdict is open. */
  constructor(
    host: HTMLElement,
    private readonly actions: PanelActions | null,
    private readonly options: PanelOptions = {}
  ) {
    this.selection = options.selection ?? new Selection();
    const only = options.main?.only ?? null;
    const context = this.context();
    const kinds = SECTIONS.filter(
      ({ title, asks }) => (only === null || title === only) && (actions !== null || !asks)
    );
    this.parts = kinds.map(kind => {
      const main = only === null && actions?.main?.sections ? actions.main : null;
      const opensIn = main && { label: main.label, open: () => main.open(kind.title) };
      const section = new Section(kind, { open: only !== null, main: opensIn });
      return { section, view: new LateView(section, kind, context) };
    });
    this.sections = this.parts.map(({ section }) => section);
    this.opened = new OpenSections(this.sections, actions, options.main !== undefined);
    this.opened.atFirst('');
    this.verdict = new VerdictView(
      (id, of = '') => void (IN_CLUSTERS.has(of) ? this.jumpInto(IN_CLUSTERS.get(of) ?? '') : this.jump(id)),
      moreOfVerdict(() => actions?.kernel ?? null),
      id => {
        this.selection.togglePin(id);
        void this.jump('code');
      }
    );
    this.notice = new Notice(kinds.some(({ id }) => id === 'code') ? () => void this.jump('code') : null);
    this.message = new Message(actions);
    this.work = new Work(kind => !kinds.some(({ jobs }) => jobs?.includes(kind)));
    this.help = new KeyHelp(actions?.nameOf ? key => actions.nameOf?.(key) ?? '' : null);
    this.head = actions
      ? new Head(actions, {
          compare: run => this.compare(run),
          showKeys: () => this.help.toggle()
        })
      : null;
    this.layout = options.main && only === null ? new MainLayout(this.sections) : null;
    const place = options.main ? 'jl-panel jl-main' : actions ? 'jl-panel' : 'jl-output';
    this.element = h(
      'div',
      { class: `jl ${place} jl-keyed`, role: 'region', 'aria-label': only === null ? 'jitlab' : `jitlab: ${only}` },
      this.bar,
      this.head?.element,
      this.notice.element,
      this.work.element,
      this.message.element,
      only === null && this.verdict.element,
      this.layout?.element ?? this.sections.map(section => section.element),
      only === null && this.foot,
      this.help.element,
      this.live
    );
    host.append(this.element);
    this.ends = [
      watchTheme(() => this.schedule()),
      this.selection.changed.connect(() => {
        this.linked = true;
        this.schedule(false);
      }),
      this.selection.question.connect(({ ask, from }) => {
        // The panel beside the notebook and the one in the main area share a selection: one of them asks.
        if (from === this.element) {
          void this.jump('what-if').then(view => view?.propose?.(ask));
        }
      })
    ];
    for (const section of this.sections) {
      section.changed = () => {
        this.opened.changed(this.state?.notebook);
        this.schedule();
      };
    }
    this.observer = new ResizeObserver(() => this.schedule());
    this.observer.observe(this.element);
    this.listen();
    this.card = new Card(this.element, context, () => this.state?.cell?.report ?? null);
    this.ends.push(() => this.card.dispose());
  }

  show(state: PanelState): void {
    if (state.notebook !== this.state?.notebook) {
      this.opened.recall(state.notebook);
    }
    this.state = state;
    const told = this.toldOf(state);
    const same = told.length === this.told.length && told.every((each, index) => each === this.told[index]);
    this.told = told;
    this.schedule(!same);
  }

  /** All of a state that figures are drawn from; the rest is counts and words of the head. */
  private toldOf({ notebook, cell }: PanelState): unknown[] {
    const kernel = this.actions?.kernel ?? null;
    const jobs = kernel && cell?.report ? kernel.jobs.of(cell.report.cell.id) : [];
    return [notebook, cell === undefined, cell?.report, cell?.refusal, cell?.origin, cell?.running, kernel, ...jobs];
  }

  /** Settings have changed. */
  configure(): void {
    this.forced = true;
    this.opened.atFirst(this.state?.notebook ?? '');
    this.schedule();
  }

  dispose(): void {
    this.observer.disconnect();
    for (const end of this.ends) {
      end();
    }
    for (const { view } of this.parts) {
      view.dispose();
    }
    this.work.dispose();
    cancelAnimationFrame(this.frame);
    this.element.remove();
  }

  /** Opens a section and goes there; once more when its view had to be loaded first, and has its height. */
  async jump(id: string): Promise<SectionView | null> {
    const part = this.parts.find(({ section }) => section.place.id === id);
    if (!part && id !== 'verdict') {
      return null;
    }
    const element = part?.section.element ?? this.verdict.element;
    if (part) {
      part.section.open = true;
      this.layout?.choose(part.section.title);
    }
    element.scrollIntoView({ block: 'start' });
    element.querySelector<HTMLElement>('button')?.focus({ preventScroll: true });
    if (!part || part.view.isLoaded) {
      return part?.view.load() ?? null;
    }
    const view = await part.view.load();
    element.scrollIntoView({ block: 'start' });
    return view;
  }

  /** The first thing of its kind among the clusters, opened, with the others below it; where there is none, the clusters. */
  private async jumpInto(kind: string): Promise<void> {
    await this.jump('clusters');
    requestAnimationFrame(() => {
      const found = this.element.querySelector<HTMLElement>(`.jl-clusters ${kind}`);
      if (found instanceof HTMLDetailsElement) {
        found.open = true;
      }
      found?.scrollIntoView({ block: 'start' });
    });
  }

  private context(): SectionContext {
    const { actions } = this;
    return {
      selection: this.selection,
      get kernel() {
        return actions?.kernel ?? null;
      },
      get confirms() {
        return actions?.settings?.confirmWhatIf ?? false;
      },
      jump: id => void this.jump(id),
      goToLine: (file, line) => actions?.goToLine?.(file, line),
      runCell: cell => actions?.runCell && (() => actions.runCell?.(cell) ?? Promise.resolve(false))
    };
  }

  /** Events may come by the thousand; the panel draws once a frame at most, and of mere events only their number. */
  private schedule(whole = true): void {
    this.whole ||= whole;
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
    const whole = this.whole || this.forced || width !== this.width;
    const selects = this.linked && state === this.shown && !whole;
    if (!state || width === 0 || (this.pressed && !selects)) {
      return; // what is being pressed stays where it is: a click needs the element that it began on
    }
    const linked = this.linked;
    this.linked = this.whole = false;
    if (selects) {
      for (const { view } of this.parts) {
        view.render();
      }
      return;
    }
    this.shown = state;
    this.width = width;
    this.forced = false;
    const cell = state.cell;
    const report = cell?.report ?? null;
    this.mark(state, report);
    this.head?.show(state, report);
    this.notice.show(state, report);
    this.work.show(state, report, this.actions?.kernel ?? null);
    this.message.show(state, report);
    if (!whole && !linked) {
      return;
    }
    const showReport = report !== null && report.cell.error === null;
    const hasFigures = report !== null && (showReport || report.ops.length + report.statements.length > 0);
    this.verdict.element.hidden = !hasFigures;
    for (const section of this.sections) {
      section.element.hidden = !hasFigures;
    }
    this.foot.hidden = !hasFigures || report.run === '';
    this.foot.textContent = report?.run ?? '';
    if (this.layout) {
      this.layout.element.hidden = !hasFigures;
      this.layout.arrange(width);
    }
    if (report && cell && hasFigures) {
      this.selection.show(report);
      this.verdict.show(report, this.layout && width >= 1200 ? width / 3 : width);
      this.opened.forReport(report, state.notebook);
      for (const { section, view } of this.parts) {
        view.show(report, this.layout?.widthOf(section) ?? width, cell);
        if (linked) {
          view.render(); // pointed at or pinned in the same frame as the report came
        }
      }
      this.announce(report, cell);
      if (cell.origin === 'live' && !cell.running) {
        this.fetchLater();
      }
    }
  }

  /** Once a run was seen here, and nothing else is to be done: with no way to the server every section can still be opened. */
  private fetchLater(): void {
    if (!this.fetched) {
      this.fetched = true;
      whenIdle(() => {
        for (const { view } of this.parts) {
          view.prefetch();
        }
        this.card.prefetch();
      });
    }
  }

  /** What style and tests read of the state. */
  private mark(state: PanelState, report: Report | null): void {
    const { cell } = state;
    const settings = this.actions?.settings ?? DEFAULTS;
    Object.assign(this.element.dataset, {
      cell: report?.cell.id ?? '',
      origin: cell?.origin ?? '',
      running: String(cell?.running ?? false),
      events: String(cell?.events ?? 0),
      colors: settings.colors
    });
    this.bar.hidden = !cell?.running;
    this.element.classList.toggle('jl-previous', cell?.origin === 'previous');
    this.element.classList.toggle('jl-still', settings.reducedMotion);
  }

  /**
   * One message a run, with the counts of its last report, which comes after its end: who walks from cell to cell reads what is
   * there, and hears what is new.
   */
  private announce({ cell, verdict }: Report, { running, origin }: CellState): void {
    const run = `${cell.id} ${cell.title}`;
    if (origin !== 'live') {
      this.announced.delete(run); // of a kernel that is gone: the next one counts from 1 too
      return;
    }
    const wanted = this.actions && !this.options.main && (this.actions.settings ?? DEFAULTS).announce;
    if (running || cell.running || !wanted || this.announced.has(run)) {
      return;
    }
    this.announced.add(run);
    const retraces = verdict.retraces ? `, ${some(verdict.retraces, 'retrace')}` : '';
    this.live.textContent = `${cell.title}: ${verdict.lead}${retraces}`;
  }

  private listen(): void {
    on(this.element, {
      keydown: event => this.onKey(event),
      pointerdown: () => {
        this.pressed = true;
      },
      focusin: event => this.element.classList.toggle('jl-keyed', !isTyping(event.target))
    });
    // Where a user can give a command another key, only the command knows its key: what it leaves over does nothing.
    const { runKey } = this.actions ?? {};
    if (runKey) {
      this.element.addEventListener(
        'keydown',
        event => {
          if (isMade(event) || isTyping(event.target)) {
            return;
          }
          const key = runKey(event) ? null : keyOf(event);
          if (key !== undefined) {
            consume(event);
          }
          if (key && this.isElsewhere(key)) {
            press(key, event.target as Element);
          }
        },
        true
      );
    }
    // Also where the pointer has left the panel meanwhile; the click comes right after.
    const release = (): void => {
      if (this.pressed) {
        this.pressed = false;
        this.schedule();
      }
    };
    for (const name of ['pointerup', 'pointercancel', 'blur']) {
      window.addEventListener(name, release);
      this.ends.push(() => window.removeEventListener(name, release));
    }
  }

  /** Signs stand on other keys of other keyboards, where no command looks for them: the sign counts, as long as it is the command's. */
  private isElsewhere(key: Key): boolean {
    return /^[^\w\s]$/.test(key.key) && this.actions?.nameOf?.(key) === keyName(key);
  }

  private onKey(event: KeyboardEvent): void {
    const { actions } = this;
    const key = keyOf(event);
    if (!actions || key?.place !== 'panel' || isTyping(event.target)) {
      return;
    }
    const acts: Record<string, () => unknown> = {
      'pin-cell': () => actions.togglePin(),
      'show-keys': () => this.help.toggle(),
      'search-graph': () => void this.jump('clusters').then(view => view?.search?.()),
      'open-section': () => actions.main?.open(this.sectionAt(event.target)?.title ?? null),
      'clear-selection': () => this.selection.clear() || actions.leave()
    };
    const [, section] = /^go-to-(.*)$/.exec(key.id) ?? [];
    const act = section === undefined ? acts[key.id] : () => void this.jump(section);
    if (act) {
      act();
      consume(event);
    }
  }

  private sectionAt(target: EventTarget | null): Section | undefined {
    return this.sections.find(({ element }) => element.contains(target as Node | null));
  }

  private compare(run: number): void {
    void this.jump('compare').then(view => view?.compareWith?.(run));
  }

  private readonly bar = h('div.jl-live', { role: 'progressbar', 'aria-label': 'The cell is running', hidden: true });
  private readonly announced = new Set<string>();
  /** Of which run it all is. */
  private readonly foot = h('p.jl-note.jl-muted.jl-foot');
  private readonly live = h('div.jl-hidden', { 'aria-live': 'polite' });
  private readonly selection: Selection;
  private readonly head: Head | null;
  private readonly notice: Notice;
  private readonly message: Message;
  private readonly work: Work;
  private readonly help: KeyHelp;
  private readonly layout: MainLayout | null;
  private readonly verdict: VerdictView;
  private readonly parts: { section: Section; view: LateView }[];
  private readonly sections: Section[];
  private readonly opened: OpenSections;
  private readonly card: Card;
  private readonly observer: ResizeObserver;
  private readonly ends: (() => void)[];
  private state: PanelState | null = null;
  private shown: PanelState | null = null;
  private width = 0;
  private linked = false;
  /** Something else than the number of events has changed. */
  private whole = true;
  private told: readonly unknown[] = [];
  private forced = false;
  private fetched = false;
  private pressed = false;
  private frame = 0;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('input:not([type=checkbox], [type=radio]), textarea, select');
}

/** Not every browser says when it is idle. */
function whenIdle(then: () => void): void {
  const { requestIdleCallback: idle } = window as Partial<Pick<Window, 'requestIdleCallback'>>;
  if (idle) {
    idle(then);
  } else {
    setTimeout(then, 1000);
  }
}
