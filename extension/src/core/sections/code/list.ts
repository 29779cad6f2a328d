import { set, takeKey } from '../../base/dom';
import { VirtualRows } from '../../base/virtual';

const ROW_HEIGHT = 18;
/** A pane is as tall as its lines, up to this many. */
const MOST_SHOWN = 20;

export interface CodeListOptions {
  label: string;
  fill: (row: HTMLElement, index: number) => void;
  /** What a row is called by the selection; "" for none. */
  idOf: (index: number) => string;
  isLit: (index: number) => boolean;
  point: (id: string | null) => void;
  pin: (index: number) => void;
  /** G on a row. */
  go?: (index: number) => void;
}

/** Lines of code, as many as there are; those that belong to what is pointed at are lit. */
export class CodeList {
  readonly element: HTMLElement;

  constructor(private readonly options: CodeListOptions) {
    this.list = new VirtualRows({
      label: options.label,
      role: 'list',
      rowHeight: ROW_HEIGHT,
      mostShown: MOST_SHOWN,
      fill: options.fill,
      filled: () => this.relight(),
      point: index => options.point((index < 0 ? '' : options.idOf(index)) || null),
      click: index => options.pin(index),
      key: (event, index) => {
        const pin = (): void => options.pin(index);
        return takeKey(event, { Enter: pin, ' ': pin, g: () => (options.go ? options.go(index) : false) });
      }
    });
    this.element = this.list.element;
  }

  /** New lines: what was there is made anew. */
  set count(count: number) {
    this.list.count = count;
  }

  /** Of the largest number, so that the column of numbers is as wide in each row, also in those not yet in sight. */
  set digits(digits: number) {
    this.element.style.setProperty('--jl-digits', String(digits));
  }

  /** Only what is lit may have changed. */
  relight(): void {
    for (const [index, row] of this.list.made) {
      const lit = this.options.isLit(index);
      if (lit !== row.classList.contains('jl-lit')) {
        row.classList.toggle('jl-lit', lit);
        set(row, { 'aria-current': lit || null });
      }
    }
  }

  /** Brings a row into the middle, where it is not in sight. */
  reveal(index: number): void {
    this.list.reveal(index);
  }

  private readonly list: VirtualRows;
}
