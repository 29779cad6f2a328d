import { h, on } from '../../base/dom';
import { begun, bytes, joined, sentence, some, whereOf } from '../../base/format';
import type { Report, Temporary } from '../../report/report';

const MOST_ROWS = 20;

export interface MemoryRow {
  value: Temporary;
  name: string;
  where: string;
  size: string;
  why: string;
}

/** Pure: the values that still reach memory, as the verdict counts them, the largest first. */
export function memoryRows(report: Report): { head: string; rows: MemoryRow[]; more: string } {
  const { stored } = report.verdict;
  const values = report.temporaries.filter(({ counted }) => counted).sort((a, b) => b.bytes - a.bytes);
  const shown = values.slice(0, MOST_ROWS);
  const ops = new Map(report.ops.map(op => [`${op.plan}\n${op.name}`, op.called || op.written]));
  const saidOf = ({ plan, producer }: Temporary, name: string): string =>
    ops.get(`${plan}\n${name}`) ?? ops.get(`${plan}\n${producer}`) ?? name;
  const smaller = (stored?.count ?? values.length) - shown.length;
  const rest = shown.reduce((sum, { bytes: size }) => sum - size, stored?.bytes ?? 0);
  return {
    head: stored?.text ?? '',
    rows: shown.map(value => ({
      value,
      name: joined(' → ', saidOf(value, value.name), readersText(value.consumers.map(name => saidOf(value, name)))),
      where: joined(' · ', whereOf(value), value.cluster),
      size: bytes(value.bytes),
      why: begun(sentence(value.reason.clause || value.reason.text))
    })),
    more: smaller > 0 ? `and ${some(smaller, 'smaller value')}, ${bytes(rest)} together` : ''
  };
}

/** Folded below the picture: what a further fusion could save, and why it was not made. */
export class MemoryFold {
  readonly element = h('details.jl-details.jl-note', { hidden: true });

  constructor(private readonly pin: (value: Temporary) => void) {
    on(this.element, {
      toggle: () => this.fill()
    });
  }

  show(report: Report): void {
    if (report !== this.report) {
      this.report = report;
      const { head } = memoryRows(report);
      this.summary.textContent = head;
      this.element.hidden = head === '';
      this.element.replaceChildren(this.summary);
      this.fill();
    }
  }

  private fill(): void {
    if (!this.element.open || !this.report || this.element.childElementCount > 1) {
      return;
    }
    const { rows, more } = memoryRows(this.report);
    this.element.append(
      h(
        'ul.jl-told',
        { 'aria-label': 'Intermediate arrays that are stored' },
        rows.map(({ value, name, where, size, why }) =>
          h(
            'li',
            h(
              'div.jl-stored-head',
              h(
                'span',
                h('button.jl-link.jl-inline', { onclick: () => this.pin(value) }, name),
                ' ',
                h('span.jl-muted', where)
              ),
              h('span', size)
            ),
            why
          )
        ),
        more && h('li.jl-muted', more)
      )
    );
  }

  private readonly summary = h('summary');
  private report: Report | null = null;
}

function readersText(names: readonly string[]): string {
  const shown = names.slice(0, 3).join(', ');
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}
