import { h, on } from './dom';

export interface VirtualOptions {
  label: string;
  /** `grid` or `treegrid`. */
  role: string;
  rowHeight: number;
  columns: readonly string[];
  /** Fills one row; it has no children and only the attributes below. */
  fill: (row: HTMLElement, index: number) => void;
  /** A key on a row; what it returns false for is left to others. */
  key?: (event: KeyboardEvent, index: number) => boolean;
  click?: (index: number, event: MouseEvent) => void;
  /** The row under the keyboard or the pointer; -1: none. */
  point?: (index: number) => void;
}

/** Rows kept above and below what can be seen. */
const SPARE = 6;

/** A list of any length: only the rows that can be seen are elements. Arrow keys walk through all of them. */
export class VirtualRows {
  readonly element: HTMLElement;

  constructor(private readonly options: VirtualOptions) {
    this.rows = h('div', { class: 'jl-rows', role: 'rowgroup' });
    this.element = h(
      'div',
      { class: 'jl-virtual', role: options.role, 'aria-label': options.label },
      h(
        'div',
        { class: 'jl-row jl-row-head', role: 'row' },
        options.columns.map(name => h('span', { role: 'columnheader' }, name))
      ),
      this.rows
    );
    on(this.element, {
      scroll: () => {
        this.schedule();
      },
      keydown: event => {
        this.onKey(event);
      },
      click: event => {
        const index = indexOf(event.target);
        if (index >= 0) {
          this.at = index;
          this.options.click?.(index, event);
          this.render();
          this.focus();
        }
      },
      pointerover: event => {
        this.options.point?.(indexOf(event.target));
      },
      pointerleave: () => {
        this.options.point?.(-1);
      }
    });
  }

  get count(): number {
    return this.length;
  }

  set count(count: number) {
    this.length = count;
    this.at = Math.max(0, Math.min(this.at, count - 1));
    this.element.setAttribute('aria-rowcount', String(count));
    this.rows.style.height = `${count * this.options.rowHeight}px`;
    this.render();
  }

  /** Fills the rows that can be seen. */
  render(): void {
    const { rowHeight } = this.options;
    const top = this.element.scrollTop;
    const tall = this.element.clientHeight || FIRST_HEIGHT;
    const first = Math.max(0, Math.floor(top / rowHeight) - SPARE);
    const last = Math.min(this.length, Math.ceil((top + tall) / rowHeight) + SPARE);
    const focused = this.element.contains(document.activeElement);
    const made: HTMLElement[] = [];
    for (let index = first; index < last; index++) {
      const row = h('div', { class: 'jl-row', role: 'row', 'data-index': index, 'aria-rowindex': index + 1 });
      row.style.transform = `translateY(${index * rowHeight}px)`;
      row.style.height = `${rowHeight}px`;
      row.tabIndex = index === this.at ? 0 : -1;
      this.options.fill(row, index);
      made.push(row);
    }
    this.rows.replaceChildren(...made);
    if (focused) {
      this.focus();
    }
  }

  /** Brings a row into sight and gives it the keyboard. */
  goTo(index: number, focus = true): void {
    this.at = Math.max(0, Math.min(index, this.length - 1));
    const { rowHeight } = this.options;
    const top = this.at * rowHeight;
    const tall = Math.max(rowHeight, this.element.clientHeight - HEAD_HEIGHT);
    if (top < this.element.scrollTop) {
      this.element.scrollTop = top;
    } else if (top + rowHeight > this.element.scrollTop + tall) {
      this.element.scrollTop = top + rowHeight - tall;
    }
    this.render();
    this.options.point?.(this.at);
    if (focus) {
      this.focus();
    }
  }

  private focus(): void {
    const row = this.rows.querySelector<HTMLElement>(`[data-index="${this.at}"]`);
    row?.focus({ preventScroll: true });
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
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
    event.preventDefault();
    event.stopPropagation();
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  private readonly rows: HTMLElement;
  private length = 0;
  private at = 0;
  private frame = 0;
}

const HEAD_HEIGHT = 22;
/** Before it is in the page. */
const FIRST_HEIGHT = 480;

function indexOf(target: EventTarget | null): number {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
  return Number(row?.dataset.index ?? -1);
}
