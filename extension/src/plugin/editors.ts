import type { CodeMirrorEditor } from '@jupyterlab/codemirror';
import type { Cell } from '@jupyterlab/cells';
import { Compartment, RangeSet, RangeSetBuilder, StateEffect, StateField, type Transaction } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, gutter, GutterMarker } from '@codemirror/view';
import { h } from '../core/base/dom';
import { clusterMark } from '../core/base/shapes';
import { brackets, costParts } from '../core/sections/code/costs';
import type { LineMark } from '../core/sections/code/lines';
import type { FollowedNotebook } from './follow';
import type { Notebooks } from './notebooks';

/** What an editor shows: its marks, which of them are lit, and whether costs stand beside the lines. */
interface Shown {
  marks: readonly LineMark[];
  lit: ReadonlySet<string>;
  costs: boolean;
}

interface Drawn {
  shown: Shown;
  lines: DecorationSet;
  selvage: RangeSet<GutterMarker>;
  costs: RangeSet<GutterMarker>;
}

const NOTHING: Shown = { marks: [], lit: new Set(), costs: false };
const NO_MARKERS: RangeSet<GutterMarker> = RangeSet.of<GutterMarker>([]);
const EMPTY: Drawn = { shown: NOTHING, lines: Decoration.none, selvage: NO_MARKERS, costs: NO_MARKERS };

const show = StateEffect.define<Shown>();

/** Follows the text while it is typed: marks move with their lines, and a line that is edited loses its mark at once. */
const drawn = StateField.define<Drawn>({
  create: () => EMPTY,
  update(value, transaction) {
    const asked = transaction.effects.find(effect => effect.is(show));
    if (asked) {
      return draw(transaction.state.doc, asked.value);
    }
    return transaction.docChanged && value !== EMPTY ? follow(value, transaction) : value;
  },
  provide: field => EditorView.decorations.from(field, ({ lines }) => lines)
});

/** The selvage of a line: its cluster's colour and pattern, the host's, or both side by side. */
class Selvage extends GutterMarker {
  constructor(readonly mark: LineMark) {
    super();
  }

  override eq(other: Selvage): boolean {
    return other.mark.color === this.mark.color && other.mark.host === this.mark.host;
  }

  override toDOM(): Node {
    const { color, host } = this.mark;
    const marks = [...(host ? ['host'] : []), ...(color === null ? [] : [clusterMark(color)])];
    return h(
      'div.jl-selvage',
      marks.map(mark => h('span.jl-swatch', { 'data-mark': mark }))
    );
  }
}

/** What a kernel cost, at its first line, with all its lines; on the others where that stands; a bracket beside them all. */
class Cost extends GutterMarker {
  constructor(readonly mark: LineMark) {
    super();
  }

  override eq(other: Cost): boolean {
    return JSON.stringify(other.mark) === JSON.stringify(this.mark);
  }

  override toDOM(): Node {
    const { cost, share, color, host, label, line } = this.mark;
    const bar = h('span.jl-cost-bar', { 'data-mark': host || color === null ? 'host' : clusterMark(color) });
    bar.style.width = `${Math.round(share * 100)}%`;
    const place = cost && line === 1 ? 'jl-cost jl-cost-at-top' : 'jl-cost';
    return h('div', { class: place, title: label }, cost !== '' && bar, costParts(this.mark), brackets(this.mark));
  }
}

function draw(doc: Transaction['state']['doc'], shown: Shown): Drawn {
  const lines = new RangeSetBuilder<Decoration>();
  const selvage = new RangeSetBuilder<GutterMarker>();
  const costs = new RangeSetBuilder<GutterMarker>();
  for (const mark of shown.marks) {
    if (mark.line > doc.lines) {
      break;
    }
    const { from, text } = doc.line(mark.line);
    if (mark.label !== '' || mark.host || mark.color !== null) {
      selvage.add(from, from, new Selvage(mark)); // else a bracket alone goes by
    }
    if (shown.costs && (mark.cost || mark.rest || mark.brackets.length)) {
      costs.add(from, from, new Cost(mark));
    }
    if (shown.lit.has(keyOf(mark))) {
      lines.add(from, from, Decoration.line({ class: 'jl-lit-line' }));
    }
    for (const [start, end, name] of placesOf(mark.changed, text)) {
      const title = `${name} changed between calls: a retrace`;
      lines.add(from + start, from + end, Decoration.mark({ class: 'jl-changed', attributes: { title } }));
    }
  }
  return { shown, lines: lines.finish(), selvage: selvage.finish(), costs: costs.finish() };
}

/** As the selection's lit lines have it: the line that was compiled, wherever it stands now. */
function keyOf({ id }: LineMark): string {
  return id.slice('line:'.length);
}

/** Where names stand in a line, in their order. */
function placesOf(names: readonly string[], text: string): [number, number, string][] {
  const places = names
    .filter(name => /^[\p{ID_Start}_]\p{ID_Continue}*$/u.test(name))
    .flatMap(name =>
      [...text.matchAll(new RegExp(`(?<![\\p{ID_Continue}.])${name}(?!\\p{ID_Continue})`, 'gu'))].map(
        (match): [number, number, string] => [match.index, match.index + name.length, name]
      )
    );
  return places.sort((a, b) => a[0] - b[0]);
}

function follow(value: Drawn, transaction: Transaction): Drawn {
  const { doc } = transaction.state;
  let { lines, selvage, costs } = value;
  lines = lines.map(transaction.changes);
  selvage = selvage.map(transaction.changes);
  costs = costs.map(transaction.changes);
  transaction.changes.iterChangedRanges((_fromA, _toA, fromB, toB) => {
    const edited = { filterFrom: doc.lineAt(fromB).from, filterTo: doc.lineAt(toB).to, filter: () => false };
    lines = lines.update(edited);
    selvage = selvage.update(edited);
    costs = costs.update(edited);
  });
  return { shown: value.shown, lines, selvage, costs };
}

/** Keeps the marks in the editors of one notebook. */
export class Editors {
  constructor(
    private readonly followed: FollowedNotebook,
    private readonly notebooks: Notebooks
  ) {
    followed.cellChanged.connect(cell => this.show(cell));
    const ends = [
      notebooks.settingsChanged.connect(() => this.showAll()),
      notebooks.selection.changed.connect(() => this.light())
    ];
    followed.notebook.disposed.connect(() => {
      cancelAnimationFrame(this.frame);
      ends.forEach(end => end());
    });
    this.showAll();
  }

  showAll(): void {
    for (const cell of this.followed.notebook.content.widgets) {
      this.show(cell);
    }
  }

  private show(cell: Cell): void {
    if (cell.isDisposed || cell.model.type !== 'code') {
      return;
    }
    const { settings } = this.notebooks;
    const marks = settings.decorations ? this.followed.marksOf(cell.model.id) : [];
    if (marks.length === 0 && !this.marked.has(cell)) {
      return;
    }
    const editor = cell.editor as CodeMirrorEditor | null;
    if (!editor) {
      // It is made when the cell comes into view.
      void cell.ready.then(() => {
        if (cell.editor) {
          this.show(cell);
        }
      });
      return;
    }
    this.marked.add(cell);
    const view = editor.editor;
    if (!view.state.field(drawn, false)) {
      editor.injectExtension([drawn, this.gutters.of([]), this.handlers()]);
    }
    const shown = { marks, lit: this.litLines(), costs: settings.costs };
    const before = view.state.field(drawn, false)?.shown ?? NOTHING;
    if (sameShown(before, shown)) {
      return;
    }
    const hadGutters = before.marks.length > 0;
    view.dispatch({
      effects: [
        show.of(shown),
        ...(hadGutters === marks.length > 0
          ? []
          : [this.gutters.reconfigure(marks.length ? this.gutterExtension() : [])])
      ]
    });
  }

  /** Only editors whose lit lines change are told, once a frame. */
  private light(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      const lit = this.litLines();
      for (const cell of this.followed.notebook.content.widgets) {
        const view = this.marked.has(cell) ? (cell.editor as CodeMirrorEditor | null)?.editor : undefined;
        const before = view?.state.field(drawn, false)?.shown;
        if (view && before && before.marks.some(mark => lit.has(keyOf(mark)) !== before.lit.has(keyOf(mark)))) {
          view.dispatch({ effects: show.of({ ...before, marks: this.followed.marksOf(cell.model.id), lit }) });
        }
      }
    });
  }

  private litLines(): ReadonlySet<string> {
    return this.notebooks.selection.lit?.lines ?? NOTHING.lit;
  }

  private gutterExtension() {
    const pin = {
      mousedown: (view: EditorView, { from }: { from: number }) => {
        const mark = markAt(view, from);
        if (mark) {
          this.notebooks.selection.togglePin(mark.id);
        }
        return mark !== undefined;
      }
    };
    return [
      EditorView.editorAttributes.of({ class: 'jl-marked' }),
      gutter({ class: 'jl-selvage-gutter', markers: view => view.state.field(drawn).selvage, domEventHandlers: pin }),
      gutter({
        class: 'jl-cost-gutter',
        side: 'after',
        markers: view => view.state.field(drawn).costs,
        domEventHandlers: pin
      })
    ];
  }

  /** What is under the pointer lights up in the panel. */
  private handlers() {
    return EditorView.domEventHandlers({
      mousemove: (event, view) => {
        const position = view.posAtCoords({ x: event.clientX, y: event.clientY }, false);
        const mark = markAt(view, position);
        this.notebooks.selection.hover(mark?.id ?? null);
      },
      mouseleave: () => this.notebooks.selection.hover(null)
    });
  }

  private frame = 0;
  private readonly marked = new WeakSet<Cell>();
  private readonly gutters = new Compartment();
}

/** The mark of the line at a position of the text. */
export function markAt(view: EditorView, position: number): LineMark | undefined {
  const value = view.state.field(drawn, false);
  if (!value || value.shown.marks.length === 0) {
    return undefined;
  }
  const { from } = view.state.doc.lineAt(position);
  let found: LineMark | undefined;
  value.selvage.between(from, from, (_from, _to, marker) => {
    found = marker instanceof Selvage ? marker.mark : undefined;
    return false;
  });
  return found;
}

function sameShown(a: Shown, b: Shown): boolean {
  return (
    a.costs === b.costs &&
    a.marks.length === b.marks.length &&
    a.marks.every((mark, index) => {
      const other = b.marks[index];
      return (
        other !== undefined &&
        JSON.stringify(mark) === JSON.stringify(other) &&
        a.lit.has(keyOf(mark)) === b.lit.has(keyOf(other))
      );
    })
  );
}
