import { fill, pattern, stroke, write } from '../../../base/draw';
import { bytes, duration } from '../../../base/format';
import { clip, clusterMark, type Ink, type Mark, type Measure } from '../../../base/shapes';
import type { Theme } from '../../../base/theme';
import { bandsOf, isMixed } from './boxes';
import { bodyOf, fitting, knownFacts, placeLabels, Room, shorten, type Area, type Wanted } from './labels';
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
  /** What is pointed at lies in it, and can't be seen. */
  holds: (node: TreeNode) => boolean;
  litEdge: (edge: TreeEdge, group: TreeNode | null) => boolean;
  /** What stands over the picture, where no name can be read. */
  covered: Area | null;
}

/** Where words stand. */
interface Place {
  x: number;
  y: number;
  width: number;
}

/** Below this height a box has no frame, and below half of it what is in a group is not drawn one by one. */
const SMALL = 5;
/** From here on a box is as wide as any name may be. */
const CLOSE = 0.9;
/** Of a name; one of which less would be left stands beside its box. */
const LEAST_PART = 0.85;
/** Operations whose names are looked at in a frame: of more there are none to be read. */
const MOST_OPERATIONS = 800;
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
  ) {
    this.room = new Room(look.width, look.height);
    this.words = new Room(look.width, look.height);
    if (look.covered) {
      this.room.take(look.covered);
    }
  }

  /** The boxes of a group whose inside begins at a point of the scene. */
  group(group: TreeNode | null, left: number, top: number, around: Area | null = null, level = 0): void {
    const { scene, view, look } = this;
    const layout = scene.layoutOf(group);
    if (!layout) {
      return;
    }
    const boxes = scene.childrenOf(group);
    this.edges(group, left, top);
    const beside = (this.beside[level] ??= new Room(look.width, look.height));
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
      [this.around, this.level] = [around, level];
      beside.take({ x, y, width, height });
      const inside = scene.isOpen(box) ? scene.layoutOf(box) : undefined;
      const isDense = 22 * view.scale < SMALL / 2;
      if (!inside || (isDense && !scene.childrenOf(box).some(({ group }) => group))) {
        this.box(box, x, y, width, height);
        continue;
      }
      this.frame(box, x, y, width, height);
      const innerLeft = left + (layout.x[index] ?? 0) + (wide - inside.width) / 2;
      this.group(box, innerLeft, top + (layout.y[index] ?? 0) + HEAD, { x, y, width, height }, level + 1);
    }
  }

  /** What stands beside the edges: over the boxes, none on another. */
  notes(): void {
    const taken: Place[] = [];
    for (const { places, text, ink } of this.said) {
      const width = this.look.measure(text, 'note');
      const place = places.map(({ x, y }) => ({ x, y, width })).find(free => isFree(free, taken, 0));
      if (place) {
        taken.push(place);
        this.room.take({ x: place.x - 2, y: place.y - 10, width: width + 4, height: 13 });
        this.plate(text, place, ink);
      }
    }
  }

  /** Names of what is too small for its own. */
  labels(): void {
    for (const { text, x, y, width } of placeLabels(this.waiting, this.room, this.beside, this.words)) {
      this.plate(text, { x: x + 2, y: y + 10, width: width - 4 }, this.look.theme.inks.text);
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
      this.said.push({ places, text: clip(text, 170, 'note', look.measure), ink });
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
    // A head that is out of sight says nothing of what is in sight.
    if (head >= 14 && y > -head / 2 && x > -28) {
      this.room.take({ x, y, width, height: head });
      const middle = y + head / 2 + 4;
      stroke(context, inks.muted, 1.25, [], new Path2D(`M${x + 13} ${middle - 6}l4 4 4 -4`));
      const timed = this.title(box, x + 28, middle, width - 36);
      const turns = turnsOf(box.op);
      const used = look.measure(box.name, 'name') + 8;
      if (turns && !timed && used + look.measure(turns, 'note') < width - 36) {
        write(context, turns, x + 28 + used, middle, look.theme.fonts.note, inks.muted);
      }
    } else {
      this.wait(box, x, y, width, height, 'group');
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
    const { context, look, view } = this;
    const { inks, tint } = look.theme;
    const ink = inkOf(box);
    const lit = look.lit(box);
    const holds = !lit && look.holds(box);
    const heat = look.heat(box);
    const isOp = box.kind === 'op' || box.kind === 'loop';
    this.room.take({ x, y, width, height });
    if (height < SMALL && !lit && !holds) {
      context.fillStyle = inks[ink];
      context.globalAlpha = heat === null ? 0.45 : 0.25 + 0.75 * heat;
      context.fillRect(x, y, Math.max(0.5, width), Math.max(0.5, height));
      context.globalAlpha = 1;
      if (!isOp) {
        this.wait(box, x, y, width, height);
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
    const rim = lit || holds ? inks.link : isOp && box.color !== null ? inks.line2 : inks[ink];
    stroke(context, rim, lit ? 2 : holds ? 1.5 : isOp ? 0.75 : 1);
    if (!isOp) {
      this.selvage(box, x, y, width, height);
    } else if (box.color === null || box.parent?.kind !== 'kernel') {
      this.selvage(box, x, y, 4, height, 3);
    }
    const seen = this.seen(x, y, width, height);
    const middle = seen.y + seen.height / 2;
    if (isOp) {
      const whole = box.name + (box.kind === 'loop' ? bodyOf(box) : '');
      // At its own size where that fits, else smaller, and closer to the rim.
      const most = seen.width - (seen.width < 40 ? 4 : 8);
      const large = lit ? 'name' : 'body';
      const type = height >= 16 && look.measure(whole, large) <= most ? large : 'note';
      const room = Math.min(most, look.measure(whole, type));
      if (height < 10.5 || (view.scale < CLOSE && room < LEAST_PART * look.measure(whole, type))) {
        this.wait(box, x, y, width, height);
        return;
      }
      const left = seen.x + Math.min(8, (seen.width - room) / 2);
      this.words.take({ x: left, y: middle - 6, width: room, height: 13 });
      write(context, shorten(whole, room, type, look.measure), left, middle + 4, look.theme.fonts[type], inks.text);
      return;
    }
    const [left, room] = [seen.x + 13, seen.width - 20];
    if (height < 10.5 || room < 12) {
      this.wait(box, x, y, width, height);
      return;
    }
    const two = height >= 28;
    const timed = this.title(box, left, two ? middle - 2 : middle + 4, room);
    if (two) {
      const facts = fitting(knownFacts(box, timed), room, 'note', look.measure);
      write(context, facts, left, middle + 12, look.theme.fonts.note, inks.muted);
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
    this.words.take({ x, y: y - 10, width: fits ? room : look.measure(name, 'name'), height: 13 });
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

  private wait(box: TreeNode, x: number, y: number, width: number, height: number, group?: 'group'): void {
    const isOp = box.kind === 'op' || box.kind === 'loop';
    if (isOp && ++this.operations > MOST_OPERATIONS) {
      return;
    }
    const { look, around, level } = this;
    const time = box.seconds === null || isOp ? '' : ` ${duration(box.seconds)}`;
    const text = shorten(box.name + time, 160, 'note', look.measure);
    const name = shorten(box.name, 160, 'note', look.measure);
    this.waiting.push({
      short: { text: name, width: look.measure(name, 'note') },
      ...{ text, width: look.measure(text, 'note'), box: this.seen(x, y, width, height), around, level },
      ...{ lit: look.lit(box) || (group !== 'group' && look.holds(box)), seconds: isOp ? 0 : (box.seconds ?? 0) },
      kind: group ?? (isOp ? 'operation' : 'closed')
    });
  }

  /** As much of a box as is on the screen. */
  private seen(x: number, y: number, width: number, height: number): Area {
    const [left, top] = [Math.max(0, x), Math.max(0, y)];
    const [right, bottom] = [Math.min(this.look.width, x + width), Math.min(this.look.height, y + height)];
    return { x: left, y: top, width: right - left, height: bottom - top };
  }

  private operations = 0;
  /** What boxes and words take already. */
  private readonly room: Room;
  /** What words take that stand in boxes. */
  private readonly words: Room;
  private readonly waiting: Wanted[] = [];
  /** The boxes at each level. */
  private readonly beside: Room[] = [];
  /** Of the box that is being drawn. */
  private around: Area | null = null;
  private level = 0;
  private readonly said: { places: { x: number; y: number }[]; text: string; ink: string }[] = [];
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
