/** The shapes that layouts make and `draw` paints. Positions are CSS pixels; colours are names, given their values by the theme. */

export const INKS = [
  ...(['bg', 'sunk', 'text', 'muted', 'line', 'line2', 'op', 'focus', 'link', 'lit'] as const),
  ...(['c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'host', 'retrace', 'compile', 'slower', 'faster'] as const)
];
export type Ink = (typeof INKS)[number];

/** A fill that says what a thing is by colour and pattern at once. */
export type Mark = ClusterMark | CompileMark | 'host' | 'op' | 'statement' | 'copy' | 'launch';
type ClusterMark = 'c0' | 'c1' | 'c2' | 'c3' | 'c4' | 'c5';
type CompileMark = 'trace' | 'retrace' | 'capture' | 'passes' | 'planning' | 'quick' | 'codegen' | 'load';

export type Shape = Box | Diamond | Words | Stroke;

export interface Box extends Paint {
  shape: 'box';
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Paint {
  radius?: number;
  mark?: Mark;
  fill?: Ink;
  /** Mixes a little of this ink into the ground. */
  tint?: Ink;
  opacity?: number;
  stroke?: Ink;
  thickness?: number;
  dash?: readonly number[];
}

export interface Diamond {
  shape: 'diamond';
  x: number;
  y: number;
  radius: number;
  /** Full in this ink; without one it is the mark of the host. */
  ink?: Ink;
}

export type Type = 'body' | 'name' | 'note' | 'lead';

export interface Words {
  shape: 'words';
  /** Left, middle or right end of the baseline. */
  x: number;
  y: number;
  text: string;
  type: Type;
  ink: Ink;
  align?: 'left' | 'center' | 'right';
  upright?: boolean;
}

export interface Stroke {
  shape: 'stroke';
  /** SVG path data. */
  path: string;
  ink: Ink;
  thickness?: number;
  dash?: readonly number[];
  /** An arrow head at the end, pointing this way. */
  arrow?: { x: number; y: number; to: 'right' | 'left' | 'down' };
}

/** A thing in a picture that can be pointed at, focused and read aloud. */
export interface Item {
  id: string;
  kind: string;
  /** A full sentence. */
  label: string;
  x: number;
  y: number;
  width: number;
  height: number;
  level: number;
  expanded?: boolean;
}

export interface Picture {
  width: number;
  height: number;
  shapes: Shape[];
}

/** Width of a text in CSS pixels. */
export type Measure = (text: string, type: Type) => number;

/** Words whose baseline begins, or ends, at a point. */
export function words(x: number, y: number, text: string, type: Type, ink: Ink, align?: Words['align']): Words {
  return { shape: 'words', x, y, text, type, ink, ...(align && { align }) };
}

/** A box, and how it is painted. */
export function box(x: number, y: number, width: number, height: number, paint: Paint): Box {
  return { shape: 'box', x, y, width, height, ...paint };
}

/** The colour of what was given up: it is hollow. */
export const HOLLOW = 6;

export function clusterMark(color: number): ClusterMark | 'op' {
  return (['c0', 'c1', 'c2', 'c3', 'c4', 'c5'] as const)[color] ?? 'op';
}

/** A space, except between a number and its unit. */
const BREAK = /(?<!\d) | (?!(?:%|×|[kMG]?B\b|[µm]?s\b))/;

/** Breaks at spaces; a word wider than the room begins a row and goes on in the next. */
export function wrap(text: string, room: number, type: Type, measure: Measure): string[] {
  const rows: string[] = [];
  let row = '';
  for (const word of text.split(BREAK)) {
    const longer = row ? `${row} ${word}` : word;
    if (row && measure(longer, type) > room) {
      rows.push(row);
      row = word;
    } else {
      row = longer;
    }
    for (let wide = measure(row, type); wide > room && row.length > 1; wide = measure(row, type)) {
      let end = Math.max(1, Math.min(row.length - 1, Math.ceil((row.length * room) / wide)));
      while (end > 1 && measure(row.slice(0, end), type) > room) {
        end--;
      }
      rows.push(row.slice(0, end));
      row = row.slice(end);
    }
  }
  return row ? [...rows, row] : rows;
}

/** Cut at the end with `…` when there is no room. */
export function clip(text: string, room: number, type: Type, measure: Measure): string {
  if (measure(text, type) <= room) {
    return text;
  }
  let shown = text;
  while (shown && measure(`${shown}…`, type) > room) {
    shown = shown.slice(0, -1);
  }
  return `${shown}…`;
}
