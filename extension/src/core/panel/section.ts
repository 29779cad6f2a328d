import { h, icon, iconButton, isChord, on, takeKey } from '../base/dom';
import type { KernelAccess } from '../report/kernel';
import type { CellState } from '../report/model';
import type { Report } from '../report/report';
import type { Ask } from '../sections/whatif/ask';
import type { Selection } from './selection';

/** What the panel lends to the views of its sections. */
export interface SectionContext {
  readonly selection: Selection;
  /** The kernel that made the report that is shown; null where that one is gone, or the report was read from a file. */
  readonly kernel: KernelAccess | null;
  /** Opens a section and goes there. */
  readonly jump: (section: string) => void;
  /** Goes to a line of the notebook; nothing happens where the file is no cell of it. */
  readonly goToLine: (file: string, line: number) => void;
  /** What runs a cell of the notebook once; undefined where the host can't. */
  readonly runCell?: (cell: string) => (() => Promise<boolean>) | undefined;
  /** Whether a measurement first says what it will run and waits for a yes; a setting. */
  readonly confirms?: boolean;
}

/** One view of the report. It is shown again when the report, a job of the cell, the width or the theme changes. */
export interface SectionView {
  show(report: Report, width: number, cell: CellState): void;
  /** Only what is pointed at has changed. */
  render?(): void;
  dispose?(): void;
  /** Of the comparison: with this run of the cell. */
  compareWith?(run: number): void;
  /** Of the clusters: shows the field for it, and goes there. */
  search?(): void;
  /** Of what-if: a question that was asked elsewhere in the panel. */
  propose?(ask: Ask): void;
}

/** What a section is called, and where it stands. */
export interface SectionPlace {
  /** In names of commands and classes, and in a report's advice. */
  id: string;
  title: string;
  /** What it holds, in a few words: what the heading says while it has nothing else to say, and when it is pointed at. */
  about?: string;
  /** Of the main area: three beside one another, and the dock below them. */
  column: 0 | 1 | 2 | 'dock';
  /** Whether it can also be read as a table. */
  table?: boolean;
}

/** A line of `SECTIONS`: all that adds a section to the panel. */
export interface SectionKind extends SectionPlace {
  /** A digit: with Alt it goes there. */
  key?: string;
  /** Left out of an output, which has no kernel to ask. */
  asks?: boolean;
  /** Kinds of jobs whose state it shows itself. */
  jobs?: readonly string[];
  /** What the heading says before the view is loaded. */
  summary?: (report: Report) => string;
  /** Its view, a script of its own: JupyterLab starts with none of them. */
  load: () => Promise<new (section: Section, context: SectionContext) => SectionView>;
}

/** All that a picture depends on besides the report: where it is the same there is nothing to draw. */
export function stateKey({ open, asTable }: Section, width: number, { linked, pin }: Selection): string {
  const { jpThemeName, jpThemeLight } = document.body.dataset;
  return [open, asTable, width, linked, pin, jpThemeName, jpThemeLight, window.devicePixelRatio].join('|');
}

/** A headed part of the panel: its heading holds the short answer, also while it is closed. */
export class Section {
  readonly title: string;
  readonly element: HTMLElement;
  readonly body: HTMLElement;
  /** Called when it was opened, closed, or turned from picture to table. */
  changed: () => void = () => undefined;

  constructor(
    readonly place: SectionPlace,
    options: { open: boolean; main?: { label: string; open: () => void } | null }
  ) {
    this.title = place.title;
    this.opened = options.open;
    const fold = (): void => {
      this.open = !this.open;
    };
    this.heading = h('button.jl-fold', { onclick: fold, title: place.about });
    this.summaryText = h('span.jl-summary');
    this.tools = h('span.jl-tools');
    this.body = h('div.jl-body');
    this.element = h(
      'section',
      { class: `jl-section jl-${place.id}`, 'aria-label': place.title },
      h('h3', this.heading, this.tools),
      this.body
    );
    if (place.table) {
      const turn = (): void => {
        this.asTable = !this.asTable;
      };
      this.tableButton = iconButton('table', 'Show as a table (T)', turn);
      this.tools.append(this.tableButton);
      on(this.element, { keydown: event => isChord(event) || takeKey(event, { t: turn }) });
    }
    const { main } = options;
    if (main) {
      this.tools.append(iconButton('main', `${main.label} (O)`, main.open));
    }
    this.update();
  }

  get open(): boolean {
    return this.opened;
  }

  set open(value: boolean) {
    this.opened = value;
    this.update();
    this.changed();
  }

  get asTable(): boolean {
    return this.table;
  }

  set asTable(value: boolean) {
    this.table = value;
    this.update();
    this.changed();
  }

  set summary(given: string) {
    const text = given || (this.place.about ?? '');
    if (this.summaryText.textContent !== text) {
      this.summaryText.textContent = text;
    }
  }

  private update(): void {
    this.heading.setAttribute('aria-expanded', String(this.opened));
    this.heading.replaceChildren(
      icon(this.opened ? 'fold' : 'unfold'),
      h('span.jl-name', this.title),
      this.summaryText
    );
    this.tableButton?.setAttribute('aria-pressed', String(this.table));
    this.tools.hidden = !this.opened;
    this.body.hidden = !this.opened;
  }

  private opened: boolean;
  private table = false;
  private readonly heading: HTMLButtonElement;
  private readonly summaryText: HTMLElement;
  private readonly tools: HTMLElement;
  private readonly tableButton: HTMLButtonElement | undefined;
}

/** The view of a section that is loaded when the section is first open, or has an answer to show: a heading needs none. */
export class LateView {
  constructor(
    private readonly section: Section,
    private readonly kind: SectionKind,
    private readonly context: SectionContext
  ) {}

  show(report: Report, width: number, cell: CellState): void {
    const isNew = report !== this.last?.[0];
    this.last = [report, width, cell];
    if (this.view) {
      this.view.show(report, width, cell);
      return;
    }
    if (isNew) {
      this.section.summary = this.kind.summary?.(report) ?? '';
    }
    if (this.section.open || this.hasJobs(report)) {
      void this.load();
    }
  }

  render(): void {
    this.view?.render?.();
  }

  dispose(): void {
    this.isDisposed = true;
    this.view?.dispose?.();
  }

  get isLoaded(): boolean {
    return this.view !== null;
  }

  /** The view, with what was shown last; null where it can't be loaded, which the section then says. */
  load(): Promise<SectionView | null> {
    this.coming ??= this.kind.load().then(
      kind => (this.isDisposed ? null : this.take(new kind(this.section, this.context))),
      () => {
        this.coming = null;
        this.fail();
        return null;
      }
    );
    return this.coming;
  }

  /** Only brings its script here. */
  prefetch(): void {
    this.kind.load().catch(() => undefined);
  }

  private take(view: SectionView): SectionView {
    this.view = view;
    this.section.body.replaceChildren();
    if (this.last) {
      view.show(...this.last);
      view.render?.();
    }
    return view;
  }

  /** A server that is gone has no scripts: what is asked for again is fetched again. */
  private fail(): void {
    const again = h('button.jl-button', { onclick: () => void this.load() }, 'Try again');
    const said = h('p.jl-muted', { role: 'status' }, 'The server did not send this section.');
    this.section.body.replaceChildren(said, again);
  }

  private hasJobs(report: Report): boolean {
    const { jobs } = this.kind;
    const open = jobs ? (this.context.kernel?.jobs.of(report.cell.id) ?? []) : [];
    return open.some(({ kind }) => jobs?.includes(kind));
  }

  private view: SectionView | null = null;
  private coming: Promise<SectionView | null> | null = null;
  private last: [Report, number, CellState] | null = null;
  private isDisposed = false;
}
