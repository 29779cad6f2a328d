import { h, on } from '../dom';

export const ROW_HEIGHT = 18;
/** Rows kept above and below what can be seen. */
const SPARE = 12;
/** A pane is as tall as its lines, up to this many. */
const MOST_SHOWN = 20;

export interface CodeListOptions {
  label: string;
  /** Makes the element of a row; `listitem` and its place are the list's. */
  make: (index: number) => HTMLElement;
  /** What a row is called by the selection; "" for none. */
  idOf: (index: number) => string;
  isLit: (index: number) => boolean;
  point: (id: string | null) => void;
  pin: (index: number) => void;
  /** G on a row. */
  go?: (index: number) => void;
}

/** Lines of code, as many as there are: only those in sight are elements, and they stay while they are in sight. */
export class CodeList {
  readonly element: HTMLElement;

  constructor(private readonly options: CodeListOptions) {
    this.rows = h('div', { class: 'jl-code-rows' });
    this.element = h('div', { class: 'jl-code-list', role: 'list', 'aria-label': options.label }, this.rows);
    on(this.element, {
      scroll: () => {
        this.frame ||= requestAnimationFrame(() => {
          this.frame = 0;
          this.fill();
        });
      },
      pointerover: event => {
        const index = indexOf(event.target);
        this.options.point(index < 0 ? null : this.options.idOf(index) || null);
      },
      pointerleave: () => {
        this.options.point(null);
      },
      click: event => {
        const index = indexOf(event.target);
        if (index >= 0) {
          this.moveTo(index, true);
          this.options.pin(index);
        }
      },
      keydown: event => {
        this.onKey(event);
      }
    });
  }

  /** New lines: what was there is made anew. */
  set count(count: number) {
    this.length = count;
    this.at = Math.max(0, Math.min(this.at, count - 1));
    this.rows.style.height = `${count * ROW_HEIGHT}px`;
    this.element.style.height = `${Math.min(count, MOST_SHOWN) * ROW_HEIGHT + 2}px`;
    this.made.clear();
    this.rows.replaceChildren();
    this.fill();
  }

  /** Only what is lit may have changed. */
  relight(): void {
    for (const [index, row] of this.made) {
      const lit = this.options.isLit(index);
      row.classList.toggle('jl-lit', lit);
      if (lit) {
        row.setAttribute('aria-current', 'true');
      } else {
        row.removeAttribute('aria-current');
      }
    }
  }

  /** Brings a row into the middle, where it is not in sight. */
  reveal(index: number): void {
    const tall = this.element.clientHeight;
    const top = index * ROW_HEIGHT;
    const { scrollTop } = this.element;
    if (tall > 0 && (top < scrollTop || top + ROW_HEIGHT > scrollTop + tall)) {
      this.element.scrollTop = Math.max(0, top - (tall - ROW_HEIGHT) / 2);
      this.fill();
    }
  }

  private fill(): void {
    const top = this.element.scrollTop;
    const tall = this.element.clientHeight || MOST_SHOWN * ROW_HEIGHT;
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - SPARE);
    const last = Math.min(this.length, Math.ceil((top + tall) / ROW_HEIGHT) + SPARE);
    for (const [index, row] of this.made) {
      if ((index < first || index >= last) && !row.contains(document.activeElement)) {
        row.remove();
        this.made.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (!this.made.has(index)) {
        const row = this.options.make(index);
        row.setAttribute('role', 'listitem');
        row.dataset.index = String(index);
        row.setAttribute('aria-setsize', String(this.length));
        row.setAttribute('aria-posinset', String(index + 1));
        row.tabIndex = index === this.at ? 0 : -1;
        row.style.top = `${index * ROW_HEIGHT}px`;
        this.made.set(index, row);
        const after = [...this.made.keys()].filter(other => other > index);
        this.rows.insertBefore(row, after.length ? (this.made.get(Math.min(...after)) ?? null) : null);
      }
    }
    this.relight();
  }

  private moveTo(index: number, focus: boolean): void {
    const to = Math.max(0, Math.min(index, this.length - 1));
    const before = this.made.get(this.at);
    if (before) {
      before.tabIndex = -1;
    }
    this.at = to;
    const top = to * ROW_HEIGHT;
    const tall = Math.max(ROW_HEIGHT, this.element.clientHeight);
    if (top < this.element.scrollTop) {
      this.element.scrollTop = top;
    } else if (top + ROW_HEIGHT > this.element.scrollTop + tall) {
      this.element.scrollTop = top + ROW_HEIGHT - tall;
    }
    this.fill();
    const row = this.made.get(to);
    if (row) {
      row.tabIndex = 0;
      if (focus) {
        row.focus({ preventScroll: true });
      }
    }
  }

  private onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 1);
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
      this.moveTo(to, true);
      this.options.point(this.options.idOf(this.at) || null);
    } else if (event.key === 'Enter' || event.key === ' ') {
      this.options.pin(this.at);
    } else if (event.key.toLowerCase() === 'g' && this.options.go) {
      this.options.go(this.at);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private readonly rows: HTMLElement;
  private readonly made = new Map<number, HTMLElement>();
  private length = 0;
  private at = 0;
  private frame = 0;
}

function indexOf(target: EventTarget | null): number {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
  return Number(row?.dataset.index ?? -1);
}
