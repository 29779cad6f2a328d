import { fill, pattern, stroke, write } from '../../../base/draw';
import { bytes, duration } from '../../../base/format';
import { clip, clusterMark, type Ink, type Mark, type Measure } from '../../../base/shapes';
import type { Theme } from '../../../base/theme';
import { bandsOf, isMixed } from './boxes';
import { bodyOf, fitting, knownFacts, shorten } from './labels';
import { HEAD, type Scene } from './scene';
import type { TreeEdge, TreeNode } from '../tree';
import { turnsOf } from '../words';

/** Scene coordinates of the upper left corner, and pixels a unit. */
export interface Viewport {
  x: number;
  y: number;
  scale: number;
}

export interface SceneLook {
  width: number;
  height: number;
  measure: Measure;
  theme: Theme;
  /** 0 to 1; null where nothing is known. */
  heat: (node: TreeNode) => number | null;
  lit: (node: TreeNode) => boolean;
  litEdge: (edge: TreeEdge, group: TreeNode | null) => boolean;
}

/** Where words stand. */
interface Place {
  x: number;
  y: number;
  width: number;
}

interface Label extends Place {
  text: string;
  weight: number;
}

/** Below this height a box has no frame, and below half of it what is in a group is not drawn one by one. */
const SMALL = 5;
/** Names that stand where the boxes are too small for their own. */
const MOST_LABELS = 28;
/** Left, top, right and lower end of each route: those that can't be seen cost no more than the asking. */
type Bounds = WeakMap<readonly number[][], Float32Array>;
const BOUNDS: Bounds = new WeakMap();

/** Draws what of a scene the viewport shows, with the detail that can be seen at its scale. */
export function drawScene(context: CanvasRenderingContext2D, scene: Scene, view: Viewport, look: SceneLook): void {
  const painter = new Painter(context, scene, view, look);
  painter.group(null, 0, 0);
  painter.notes();
  painter.labels();
}

class Painter {
  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly scene: Scene,
    private readonly view: Viewport,
    private readonly look: SceneLook
  ) {}

  /** The boxes of a group whose inside begins at a point of the scene. */
  group(group: TreeNode | null, left: number, top: number): void {
    const { scene, view, look } = this;
    const layout = scene.layoutOf(group);
    if (!layout) {
      return;
    }
    const boxes = scene.childrenOf(group);
    this.edges(group, left, top);
    for (let index = 0; index < boxes.length; index++) {
      const box = boxes[index];
      if (!box) {
        continue;
      }
      const [wide, tall] = scene.sizeOf(box);
      const x = (left + (layout.x[index] ?? 0) - view.x) * view.scale;
      const y = (top + (layout.y[index] ?? 0) - view.y) * view.scale;
      const width = wide * view.scale;
      const height = tall * view.scale;
      if (x > look.width || y > look.height || x + width < 0 || y + height < 0) {
        continue;
      }
      const inside = scene.isOpen(box) ? scene.layoutOf(box) : undefined;
      if (!inside) {
        this.box(box, x, y, width, height);
        continue;
      }
      this.frame(box, x, y, width, height);
      if (22 * view.scale >= SMALL / 2) {
        const innerLeft = left + (layout.x[index] ?? 0) + (wide - inside.width) / 2;
        this.group(box, innerLeft, top + (layout.y[index] ?? 0) + HEAD);
      }
    }
  }

  /** What stands beside the edges: over the boxes, none on another. */
  notes(): void {
    const taken: Place[] = [];
    for (const { places, text, ink } of this.beside) {
      const width = this.look.measure(text, 'note');
      const place = places.map(({ x, y }) => ({ x, y, width })).find(free => isFree(free, taken, 0));
      if (place) {
        taken.push(place);
        this.plate(text, place, ink);
      }
    }
  }

  /** The heaviest names of what is too small for its own, none on another. */
  labels(): void {
    const taken: Label[] = [];
    for (const label of this.waiting.sort((a, b) => b.weight - a.weight).slice(0, 6 * MOST_LABELS)) {
      if (taken.length < MOST_LABELS && isFree(label, taken, 4)) {
        taken.push(label);
        this.plate(label.text, label, this.look.theme.inks.text);
      }
    }
  }

  /** Words on a ground of their own. */
  private plate(text: string, { x, y, width }: Place, ink: string): void {
    const { context, look } = this;
    context.globalAlpha = 0.85;
    context.fillStyle = look.theme.inks.bg;
    context.fillRect(x - 2, y - 10, width + 4, 13);
    context.globalAlpha = 1;
    write(context, text, x, y, look.theme.fonts.note, ink);
  }

  private edges(group: TreeNode | null, left: number, top: number): void {
    const { context, scene, view, look } = this;
    const layout = scene.layoutOf(group);
    const { inks } = look.theme;
    if (!layout || view.scale < 0.06) {
      return;
    }
    const edges = scene.source.edgesOf(group);
    const bounds = boundsOf(layout.routes);
    const at = (x: number, y: number): [number, number] => [
      (left + x - view.x) * view.scale,
      (top + y - view.y) * view.scale
    ];
    const [fromX, fromY] = [view.x - left, view.y - top];
    const [toX, toY] = [fromX + look.width / view.scale, fromY + look.height / view.scale];
    const lines = new Path2D();
    const heads = new Path2D();
    const lit = new Path2D();
    const apart: { edge: TreeEdge; route: readonly number[] }[] = [];
    for (let index = 0; index < edges.length; index++) {
      const [edge, route] = [edges[index], layout.routes[index]];
      const seen =
        (bounds[4 * index] ?? 0) <= toX &&
        (bounds[4 * index + 1] ?? 0) <= toY &&
        (bounds[4 * index + 2] ?? 0) >= fromX &&
        (bounds[4 * index + 3] ?? 0) >= fromY;
      if (!edge || !route || !seen) {
        continue;
      }
      const points = route.slice();
      for (let place = 0; place < points.length; place += 2) {
        [points[place], points[place + 1]] = at(points[place] ?? 0, points[place + 1] ?? 0);
      }
      if (edge.boundary) {
        apart.push({ edge, route: points });
      } else {
        trace(look.litEdge(edge, group) ? lit : lines, points, view.scale > 0.25);
        if (view.scale > 0.35) {
          arrowHead(heads, points, view.scale);
        }
      }
    }
    context.setLineDash([]);
    stroke(context, inks.line2, Math.max(0.5, Math.min(1, view.scale * 1.4)), [], lines);
    context.fillStyle = inks.line2;
    context.fill(heads);
    stroke(context, inks.link, 2, [], lit);
    for (const { edge, route } of apart) {
      this.notFused(edge, group, route);
    }
  }

  /** Two strokes across a dashed line; bytes and reason beside it where there is room to read. */
  private notFused(edge: TreeEdge, group: TreeNode | null, route: readonly number[]): void {
    const { context, view, look } = this;
    const { inks } = look.theme;
    const ink = look.litEdge(edge, group) ? inks.link : inks.text;
    const path = new Path2D();
    trace(path, route, true);
    stroke(context, ink, view.scale > 0.4 ? 1.25 : 0.75, [3, 2.5], path);
    const heads = new Path2D();
    arrowHead(heads, route, view.scale);
    context.fillStyle = ink;
    context.fill(heads);
    // Where it enters its reader, or leaves what makes it: there is a gap between boxes.
    const gap = 12 * Math.min(1, view.scale);
    const [x, y] = [route.at(-2) ?? 0, (route.at(-1) ?? 0) - gap];
    if (view.scale > 0.3) {
      stroke(context, ink, 1.5, [], new Path2D(`M${x - 6} ${y}l12 -5M${x - 6} ${y + 5}l12 -5`));
    }
    if (view.scale >= 0.7 && edge.boundary) {
      const text = `Not fused, ${bytes(edge.boundary.bytes)}`;
      const places = [
        { x: x + 10, y: y + 4 },
        { x: (route[0] ?? 0) + 10, y: (route[1] ?? 0) + gap + 2 }
      ];
      this.beside.push({ places, text: clip(text, 170, 'note', look.measure), ink });
    }
  }

  private frame(box: TreeNode, x: number, y: number, width: number, height: number): void {
    const { context, look, view } = this;
    const { inks } = look.theme;
    const lit = look.lit(box);
    const ink = inkOf(box);
    context.beginPath();
    context.roundRect(x, y, width, height, box.color === null ? 0 : Math.min(3, height / 4));
    fill(context, inks.bg);
    fill(context, inks[ink], box.kind === 'part' || box.kind === 'plan' ? 0.02 : look.theme.tint);
    const rim = lit ? inks.link : box.kind === 'part' || box.kind === 'loop' ? inks.line2 : inks[ink];
    stroke(context, rim, lit ? 2 : 1, box.kind === 'part' ? [3, 3] : []);
    this.selvage(box, x, y, width, height);
    const head = HEAD * view.scale;
    if (head >= 14) {
      const middle = y + head / 2 + 4;
      stroke(context, inks.muted, 1.25, [], new Path2D(`M${x + 13} ${middle - 6}l4 4 4 -4`));
      const timed = this.title(box, x + 28, middle, width - 36);
      const turns = turnsOf(box.op);
      const used = look.measure(box.name, 'name') + 8;
      if (turns && !timed && used + look.measure(turns, 'note') < width - 36) {
        write(context, turns, x + 28 + used, middle, look.theme.fonts.note, inks.muted);
      }
    } else if (width > 30) {
      this.wait(box, x + 4, y + 11, width);
    }
    if (box.scope && head >= 10) {
      context.beginPath();
      context.rect(x - 4, y - 4, width + 8, height + 8);
      stroke(context, inks.text, 1, [1.5, 3]);
      const text = shorten(box.scope, Math.max(30, width - 20), 'note', look.measure);
      context.fillStyle = inks.bg;
      // On its lower edge: above the upper one stands the name of the box around it.
      context.fillRect(x + 10, y + height - 2, look.measure(text, 'note') + 8, 12);
      write(context, text, x + 14, y + height + 8, look.theme.fonts.note, inks.text);
    }
  }

  private box(box: TreeNode, x: number, y: number, width: number, height: number): void {
    const { context, look } = this;
    const { inks, tint } = look.theme;
    const ink = inkOf(box);
    const lit = look.lit(box);
    const heat = look.heat(box);
    const isOp = box.kind === 'op' || box.kind === 'loop';
    if (height < SMALL && !lit) {
      context.fillStyle = inks[ink];
      context.globalAlpha = heat === null ? 0.45 : 0.25 + 0.75 * heat;
      context.fillRect(x, y, Math.max(0.5, width), Math.max(0.5, height));
      context.globalAlpha = 1;
      if (!isOp) {
        this.wait(box, x, y + 10, width);
      }
      return;
    }
    context.beginPath();
    if (box.color === null || height < 12) {
      context.rect(x, y, width, height);
    } else {
      context.roundRect(x, y, width, height, 3);
    }
    fill(context, lit ? inks.lit : isOp ? inks.sunk : inks.bg);
    fill(context, inks[ink], heat === null ? (isOp ? 0 : tint) : 0.04 + 0.4 * heat);
    const rim = lit ? inks.link : isOp && box.color !== null ? inks.line2 : inks[ink];
    stroke(context, rim, lit ? 2 : isOp ? 0.75 : 1);
    if (!isOp) {
      this.selvage(box, x, y, width, height);
    } else if (box.color === null || box.parent?.kind !== 'kernel') {
      this.selvage(box, x, y, 4, height, 3);
    }
    const [left, room] = isOp ? [x + 8, width - 14] : [x + 13, width - 20];
    if (height < 10.5 || room < 12) {
      if (!isOp) {
        this.wait(box, x + 2, y + 10, width);
      }
      return;
    }
    if (isOp) {
      const type = lit && height >= 16 ? 'name' : height >= 16 ? 'body' : 'note';
      const name = shorten(box.name + (box.kind === 'loop' ? bodyOf(box) : ''), room, type, look.measure);
      write(context, name, left, y + height / 2 + 4, look.theme.fonts[type], inks.text);
      return;
    }
    const two = height >= 28;
    const timed = this.title(box, left, two ? y + height / 2 - 2 : y + height / 2 + 4, room);
    if (two) {
      const facts = fitting(knownFacts(box, timed), room, 'note', look.measure);
      write(context, facts, left, y + height / 2 + 12, look.theme.fonts.note, inks.muted);
    }
  }

  /** Name, and at the right the time where both fit; whether they did. */
  private title(box: TreeNode, x: number, y: number, room: number): boolean {
    const { context, look } = this;
    const { inks, fonts } = look.theme;
    const time = box.seconds === null ? '' : duration(box.seconds);
    const timeWidth = time ? look.measure(time, 'name') : 0;
    const fits = timeWidth > 0 && timeWidth + look.measure(box.name, 'name') + 8 < room;
    const name = shorten(box.name, fits ? room - timeWidth - 8 : room, 'name', look.measure);
    write(context, name, x, y, fonts.name, inks.text);
    if (fits) {
      write(context, time, x + room, y, fonts.name, inks.text, 'right');
    }
    return fits;
  }

  private selvage(box: TreeNode, x: number, y: number, width: number, height: number, size = 6): void {
    if (box.kind === 'part' || box.kind === 'plan') {
      return;
    }
    const { context, look } = this;
    const wide = Math.min(size, Math.max(1.5, width / 8));
    const own: [Mark, number] = [box.color === null ? 'host' : clusterMark(box.color), 1];
    let top = y;
    for (const [mark, part] of box.kind === 'cluster' && box.flow ? bandsOf(box.flow) : [own]) {
      context.fillStyle = pattern(context, mark, look.theme);
      context.fillRect(x, top, wide, height * part);
      top += height * part;
    }
  }

  private wait(box: TreeNode, x: number, y: number, width: number): void {
    const heat = this.look.heat(box);
    const time = box.seconds === null ? '' : ` ${duration(box.seconds)}`;
    const text = shorten(box.name + time, 160, 'note', this.look.measure);
    this.waiting.push({
      x: Math.max(2, x),
      y: Math.max(11, y),
      width: this.look.measure(text, 'note'),
      text,
      weight: (heat ?? 0) * 1e6 + box.count + width
    });
  }

  private readonly waiting: Label[] = [];
  private readonly beside: { places: { x: number; y: number }[]; text: string; ink: string }[] = [];
}

function boundsOf(routes: readonly number[][]): Float32Array {
  let bounds = BOUNDS.get(routes);
  if (!bounds) {
    bounds = new Float32Array(4 * routes.length);
    for (let index = 0; index < routes.length; index++) {
      const route = routes[index] ?? [];
      bounds.set([Infinity, Infinity, -Infinity, -Infinity], 4 * index);
      for (let place = 0; place < route.length; place++) {
        const [low, high] = [4 * index + (place % 2), 4 * index + 2 + (place % 2)];
        bounds[low] = Math.min(bounds[low] ?? 0, route[place] ?? 0);
        bounds[high] = Math.max(bounds[high] ?? 0, route[place] ?? 0);
      }
    }
    BOUNDS.set(routes, bounds);
  }
  return bounds;
}

/** Whether words at a place stand on none of those that are there already. */
function isFree({ x, y, width }: Place, taken: readonly Place[], gap: number): boolean {
  return taken.every(
    other => x + width + gap < other.x || other.x + other.width + gap < x || Math.abs(y - other.y) > 13
  );
}

export function inkOf(box: TreeNode): Ink {
  const isOfSeveral = box.kind === 'cluster' && box.flow !== null && isMixed(box.flow);
  return box.kind === 'plan' || isOfSeveral ? 'line2' : box.color === null ? 'host' : clusterMark(box.color);
}

function trace(path: Path2D, points: readonly number[], curved: boolean): void {
  path.moveTo(points[0] ?? 0, points[1] ?? 0);
  for (let at = 2; at < points.length; at += 2) {
    const [x0, y0] = [points[at - 2] ?? 0, points[at - 1] ?? 0];
    const [x1, y1] = [points[at] ?? 0, points[at + 1] ?? 0];
    if (!curved || Math.abs(x1 - x0) < 1 || Math.abs(y1 - y0) < 1) {
      path.lineTo(x1, y1);
    } else {
      const half = (y0 + y1) / 2;
      path.bezierCurveTo(x0, half, x1, half, x1, y1);
    }
  }
}

function arrowHead(path: Path2D, points: readonly number[], scale: number): void {
  const [x, y] = [points.at(-2) ?? 0, points.at(-1) ?? 0];
  const size = Math.min(1, scale + 0.2);
  path.moveTo(x, y);
  path.lineTo(x - 3 * size, y - 5 * size);
  path.lineTo(x + 3 * size, y - 5 * size);
  path.closePath();
}
