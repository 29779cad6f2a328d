import { consume, h, isChord, on } from './dom';

export interface VirtualOptions {
  label: string;
  /** `list`, whose rows are its items, or a table: `grid`, `treegrid`, `table`. */
  role: string;
  rowHeight: number;
  /** The head of a table. */
  columns?: readonly string[];
  /** As tall as its rows, up to this many; else as tall as the page lets it be. */
  mostShown?: number;
  /** Fills one row; it has no children and only the attributes below. */
  fill: (row: HTMLElement, index: number) => void;
  /** Rows have come into sight. */
  filled?: () => void;
  /** A key on a row; what it returns false for is left to others. */
  key?: (event: KeyboardEvent, index: number) => boolean;
  click?: (index: number, event: MouseEvent) => void;
  /** The row under the keyboard or the pointer; -1: none. */
  point?: (index: number) => void;
}

/** Rows kept above and below what can be seen. */
const SPARE = 12;

/** A list of any length: only rows in sight are elements, and they stay while they are. Arrow keys walk through all of them. */
export class VirtualRows {
  readonly element: HTMLElement;
  /** The rows that are elements now. */
  readonly made: ReadonlyMap<number, HTMLElement>;

  constructor(private readonly options: VirtualOptions) {
    const { role, columns, label } = options;
    this.isList = role === 'list';
    this.headHeight = columns ? HEAD_HEIGHT : 0;
    this.made = this.byIndex;
    this.rows = h('div', this.isList ? { class: 'jl-code-rows' } : { class: 'jl-rows', role: 'rowgroup' });
    this.element = h(
      'div',
      { class: this.isList ? 'jl-code-list' : 'jl-virtual', role, 'aria-label': label },
      columns &&
        h(
          'div.jl-row.jl-row-head',
          { role: 'row' },
          columns.map(name => h('span', { role: 'columnheader' }, name))
        ),
      this.rows
    );
    on(this.element, {
      scroll: () => {
        this.frame ||= requestAnimationFrame(() => {
          this.frame = 0;
          this.fill();
        });
      },
      keydown: event => this.onKey(event),
      click: event => {
        const index = indexOf(event.target);
        if (index >= 0) {
          this.moveTo(index);
          this.options.click?.(index, event);
          this.focus();
        }
      },
      pointerover: event => this.options.point?.(indexOf(event.target)),
      pointerleave: () => this.options.point?.(-1)
    });
  }

  get count(): number {
    return this.length;
  }

  /** New rows: what was there is made anew. */
  set count(count: number) {
    const { rowHeight, mostShown } = this.options;
    this.length = count;
    this.at = Math.max(0, Math.min(this.at, count - 1));
    this.rows.style.height = `${count * rowHeight}px`;
    if (!this.isList) {
      this.element.setAttribute('aria-rowcount', String(count));
    }
    if (mostShown !== undefined) {
      this.element.style.height = `${Math.min(count, mostShown) * rowHeight + BORDERS}px`;
    }
    this.render();
  }

  /** Makes the rows in sight anew. */
  render(): void {
    const focused = this.element.contains(document.activeElement);
    this.byIndex.clear();
    this.rows.replaceChildren();
    this.fill();
    if (focused) {
      this.focus();
    }
  }

  /** Brings a row into sight and gives it the keyboard. */
  goTo(index: number, focus = true): void {
    this.moveTo(index);
    this.options.point?.(this.at);
    if (focus) {
      this.focus();
    }
  }

  /** Brings a row into the middle, where it is not in sight. */
  reveal(index: number): void {
    const { rowHeight } = this.options;
    const tall = this.element.clientHeight - this.headHeight;
    const top = index * rowHeight;
    const { scrollTop } = this.element;
    if (tall > 0 && (top < scrollTop || top + rowHeight > scrollTop + tall)) {
      this.element.scrollTop = Math.max(0, top - (tall - rowHeight) / 2);
      this.fill();
    }
  }

  private fill(): void {
    const { rowHeight, mostShown } = this.options;
    const top = this.element.scrollTop;
    const tall = this.element.clientHeight || (mostShown === undefined ? FIRST_HEIGHT : mostShown * rowHeight);
    const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
    const last = Math.min(this.length, Math.ceil((top + tall) / rowHeight) + SPARE);
    for (const [index, row] of this.byIndex) {
      if ((index < first || index >= last) && !row.contains(document.activeElement)) {
        row.remove();
        this.byIndex.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (!this.byIndex.has(index)) {
        this.byIndex.set(index, this.make(index));
      }
    }
    // Rows that are there stay where they are: one that was moved would lose the focus.
    let next = this.rows.firstElementChild;
    for (const [, row] of [...this.byIndex].sort(([a], [b]) => a - b)) {
      if (row === next) {
        next = next.nextElementSibling;
      } else {
        this.rows.insertBefore(row, next);
      }
    }
    this.options.filled?.();
  }

  private make(index: number): HTMLElement {
    const place = this.isList
      ? { class: 'jl-ln', role: 'listitem', 'aria-setsize': this.length, 'aria-posinset': index + 1 }
      : { class: 'jl-row', role: 'row', 'aria-rowindex': index + 1 };
    const row = h('div', { ...place, 'data-index': index });
    row.style.top = `${index * this.options.rowHeight}px`;
    row.style.height = `${this.options.rowHeight}px`;
    row.tabIndex = index === this.at ? 0 : -1;
    this.options.fill(row, index);
    return row;
  }

  private moveTo(index: number): void {
    const before = this.byIndex.get(this.at);
    if (before) {
      before.tabIndex = -1;
    }
    this.at = Math.max(0, Math.min(index, this.length - 1));
    const { rowHeight } = this.options;
    const top = this.at * rowHeight;
    const tall = Math.max(rowHeight, this.element.clientHeight - this.headHeight);
    if (top < this.element.scrollTop) {
      this.element.scrollTop = top;
    } else if (top + rowHeight > this.element.scrollTop + tall) {
      this.element.scrollTop = top + rowHeight - tall;
    }
    this.fill();
    const row = this.byIndex.get(this.at);
    if (row) {
      row.tabIndex = 0;
    }
  }

  private focus(): void {
    this.byIndex.get(this.at)?.focus({ preventScroll: true });
  }

  private onKey(event: KeyboardEvent): void {
    if (isChord(event)) {
      return;
    }
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.options.rowHeight) - 1);
    const steps: Record<string, number> = {
      ArrowDown: this.at + 1,
      ArrowUp: this.at - 1,
      PageDown: this.at + page,
      PageUp: this.at - page,
      Home: 0,
      End: this.length - 1
    };
    const to = steps[event.key];
    if (to !== undefined) {
      this.goTo(to);
    } else if (!this.options.key?.(event, this.at)) {
      return;
    }
    consume(event);
  }

  private readonly isList: boolean;
  private readonly headHeight: number;
  private readonly rows: HTMLElement;
  private readonly byIndex = new Map<number, HTMLElement>();
  private length = 0;
  private at = 0;
  private frame = 0;
}

const HEAD_HEIGHT = 22;
/** Of a list that is as tall as its rows. */
const BORDERS = 2;
/** Before it is in the page. */
const FIRST_HEIGHT = 480;

function indexOf(target: EventTarget | null): number {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
  return Number(row?.dataset.index ?? -1);
}
