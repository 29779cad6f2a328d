import type { Linked } from '../../../report/links';
import { words, wrap, type Ink, type Item, type Measure, type Shape } from '../../../base/shapes';
import type { Stroke, Type, Words } from '../../../base/shapes';
import type { Heat } from './heat';

export interface ClustersOptions {
  width: number;
  measure: Measure;
  open: ReadonlySet<string>;
  /** The thing that is pointed at or pinned in any view. */
  linked: Linked | null;
  /** What the bars of the boxes say; null: nothing. */
  heat?: Heat | null;
  /** The id of a named thing of a plan; its name, where that is enough. */
  idOf?: (name: string, plan: string) => string;
}

/** What the parts of the spine draw with: words and strokes become shapes, things that can be pointed at become items. */
export class Pen {
  readonly shapes: Shape[] = [];
  readonly items: Item[] = [];
  /** What was told of several edges of the box that is drawn. */
  readonly said = new Set<string>();

  constructor(readonly options: ClustersOptions) {}

  words(x: number, y: number, text: string, type: Type, ink: Ink, align?: Words['align']): void {
    if (text) {
      this.shapes.push(words(x, y, text, type, ink, align));
    }
  }

  /** Broken into lines; the baseline of the next one. */
  addLines(text: string, x: number, y: number, room: number, type: Type, ink: Ink): number {
    let at = y;
    for (const row of text ? wrap(text, room, type, this.options.measure) : []) {
      this.words(x, at, row, type, ink);
      at += type === 'name' ? 15 : 14;
    }
    return at;
  }

  stroke(path: string, ink: Ink, arrow?: Stroke['arrow']): void {
    this.shapes.push({ shape: 'stroke', path, ink, ...(arrow && { arrow }) });
  }

  /** The id by which all views know a named thing of a plan. */
  idOf(name: string, plan: string): string {
    return this.options.idOf?.(name, plan) ?? name;
  }
}
