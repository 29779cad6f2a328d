import { chooser, h } from '../../base/dom';
import { fileName, joined, lines } from '../../base/format';
import { clusterMark } from '../../base/shapes';
import type { Report, Source } from '../../report/report';
import type { SectionContext } from '../../panel/section';
import { CodeList } from './list';
import { columnsOf, sourceRows, sourceToRead, sourcesOf, type SourceRow } from './rows';
import { brackets, costParts } from './costs';
import { restText, type LineMark } from './lines';
import { tokens, type Token } from './tokens';

/** The source as it was compiled: whose each line is, what it cost, and what of it changed from call to call. */
export class SourcePane {
  readonly element: HTMLElement;

  constructor(private readonly context: SectionContext) {
    this.list = new CodeList({
      label: 'Source',
      fill: (row, index) => this.fillRow(row, index),
      idOf: index => this.rows[index]?.id ?? '',
      isLit: index => this.context.selection.lit?.lines.has(this.rows[index]?.id.slice(5) ?? '') === true,
      point: id => this.context.selection.hover(id),
      pin: index => {
        const row = this.rows[index];
        if (row) {
          this.context.selection.togglePin(row.id);
        }
      },
      go: index => {
        const row = this.rows[index];
        if (row) {
          this.context.goToLine(this.file, row.line);
        }
      }
    });
    this.element = h('div.jl-source', this.head, this.list.element);
  }

  show(report: Report): void {
    this.sources = sourcesOf(report);
    const file = sourceToRead(this.sources, report, this.context.selection.held, this.file);
    if (report !== this.report || file !== this.file) {
      this.report = report;
      this.file = file;
      this.fill();
    }
  }

  /** Only what is pointed at has changed. */
  relight(): void {
    const { pin } = this.context.selection;
    if (pin !== this.pinned) {
      this.pinned = pin;
      if (this.report) {
        this.show(this.report);
        this.list.count = this.rows.length; // the pinned operation is marked within its line
        this.reveal();
      }
    }
    this.list.relight();
  }

  private fill(): void {
    const source = this.sources.find(({ file }) => file === this.file);
    this.rows = this.report && source ? sourceRows(this.report, source) : [];
    const many = this.sources.length > 1;
    this.head.hidden = !many;
    if (many) {
      const files = this.sources.map(({ file }) => ({ value: file, text: fileName(file) }));
      const choose = (file: string): void => {
        this.file = file;
        this.fill();
      };
      this.head.replaceChildren(chooser('Source', files, this.file, choose));
    }
    this.list.digits = String(this.rows.at(-1)?.line ?? 0).length;
    this.list.count = this.rows.length;
    const first = this.rows.findIndex(({ mark }) => mark !== null);
    if (first > 0) {
      this.list.reveal(first);
    }
    this.reveal();
  }

  private reveal(): void {
    const lines = this.context.selection.held?.lines;
    const at = lines ? this.rows.findIndex(({ id }) => lines.has(id.slice(5))) : -1;
    if (at >= 0) {
      this.list.reveal(at);
    }
  }

  private fillRow(element: HTMLElement, index: number): void {
    const row = this.rows[index];
    if (!row) {
      return;
    }
    const { mark } = row;
    element.dataset.id = row.id;
    element.style.setProperty('--jl-letters', String(row.text.length));
    element.setAttribute('aria-label', spoken(row));
    element.append(
      h('span.jl-no', String(row.line)),
      selvage(mark ? [...(mark.color === null ? [] : [clusterMark(mark.color)]), ...(mark.host ? ['host'] : [])] : []),
      h('span.jl-tx', this.text(row)),
      mark && (mark.cost || mark.rest || mark.brackets.length) ? cost(mark) : ''
    );
  }

  private text(row: SourceRow): (HTMLElement | string)[] {
    const { held, links } = this.context.selection;
    const isMeant = held?.kind === 'op' || held?.kind === 'edge';
    const ops = isMeant ? [...held.ops].map(id => links?.op(id)).filter(op => op !== undefined) : [];
    return painted(tokens(row.text, 'python'), row.mark?.changed ?? [], columnsOf(ops, row));
  }

  private readonly head = h('div.jl-code-head', { hidden: true });
  private readonly list: CodeList;
  private sources: Source[] = [];
  private rows: SourceRow[] = [];
  private report: Report | null = null;
  private file = '';
  private pinned: string | null = null;
}

/** A cluster's band, and the host's beside it where a line has both. */
export function selvage(marks: readonly string[]): HTMLElement {
  return h(
    'span.jl-selvage',
    { 'aria-hidden': 'true' },
    marks.map(mark => h('i.jl-band', { 'data-mark': mark }))
  );
}

/** Stretches as elements; names that changed are underlined, and so is what is pinned. */
export function painted(
  found: readonly Token[],
  changed: readonly string[],
  hit: [number, number] | null
): (HTMLElement | string)[] {
  const names = changed.map(name => /^\w+/.exec(name)?.[0] ?? '').filter(Boolean);
  const parts: (HTMLElement | string)[] = [];
  let at = 0;
  for (const [kind, text] of found) {
    for (const [piece, within] of cutAt(text, at, hit)) {
      for (const word of kind === '' && names.length ? piece.split(/\b/) : [piece]) {
        const baked = kind === '' && names.includes(word);
        const style = joined(' ', kind && `jl-is-${kind}`, within && 'jl-hit', baked && 'jl-baked');
        parts.push(
          style
            ? h('span', { class: style, title: baked ? 'A change of it was the cause of a retrace' : null }, word)
            : word
        );
      }
    }
    at += text.length;
  }
  return parts;
}

/** A stretch cut where what is pinned begins and ends. */
function cutAt(text: string, at: number, hit: [number, number] | null): [string, boolean][] {
  const [from, to] = hit ? [hit[0] - at, hit[1] - at] : [0, 0];
  if (to <= 0 || from >= text.length || from >= to) {
    return [[text, false]];
  }
  return (
    [
      [text.slice(0, Math.max(0, from)), false],
      [text.slice(Math.max(0, from), to), true],
      [text.slice(to), false]
    ] as [string, boolean][]
  ).filter(([piece]) => piece !== '');
}

function cost(mark: LineMark): HTMLElement {
  const kind = mark.host || mark.color === null ? 'host' : clusterMark(mark.color);
  const wide = mark.cost ? Math.round(84 * mark.share) + 1 : 0;
  return h(
    'span.jl-cost',
    { 'data-mark': kind, style: `--jl-wide:${wide}px`, title: mark.label || null },
    costParts(mark),
    brackets(mark)
  );
}

function spoken({ line, text, mark }: SourceRow): string {
  const of = mark && mark.span.length > 0 ? ` for ${lines(mark.span)} together` : '';
  const said = mark?.cost ? `${mark.name} ${mark.cost}${of}` : mark ? restText(mark) : '';
  return joined(', ', `line ${line}`, said, text.trim());
}
