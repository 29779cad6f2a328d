import type { Box, Diamond, Ink, Mark, Shape, Stroke, Words } from './shapes';
import type { Theme } from './theme';

/** Paints shapes; knows nothing of reports. One painter for every picture, so that one mark means one thing. */
export function draw(context: CanvasRenderingContext2D, shapes: readonly Shape[], theme: Theme): void {
  // Each leaves the context as it found it; saving and restoring all of it is what a moving picture has no time for.
  context.setLineDash([]);
  for (const shape of shapes) {
    switch (shape.shape) {
      case 'box':
        drawBox(context, shape, theme);
        break;
      case 'diamond':
        drawDiamond(context, shape, theme);
        break;
      case 'words':
        drawWords(context, shape, theme);
        break;
      case 'stroke':
        drawStroke(context, shape, theme);
        break;
    }
  }
}

function drawBox(context: CanvasRenderingContext2D, box: Box, theme: Theme): void {
  context.beginPath();
  if (box.radius) {
    context.roundRect(box.x, box.y, box.width, box.height, box.radius);
  } else {
    context.rect(box.x, box.y, box.width, box.height);
  }
  if (box.fill) {
    fill(context, theme.inks[box.fill], box.opacity);
  }
  if (box.tint) {
    fill(context, theme.inks[box.tint], theme.tint);
  }
  if (box.mark) {
    fillMark(context, box, box.mark, theme);
  }
  if (box.stroke) {
    stroke(context, theme.inks[box.stroke], box.thickness, box.dash);
  }
}

/** Fills the current path. */
export function fill(context: CanvasRenderingContext2D, style: string | CanvasPattern, opacity = 1): void {
  context.globalAlpha = opacity;
  context.fillStyle = style;
  context.fill();
  context.globalAlpha = 1;
}

/** Strokes a path, else the current one. */
export function stroke(
  context: CanvasRenderingContext2D,
  style: string,
  thickness = 1,
  dash: readonly number[] = [],
  path?: Path2D
): void {
  context.strokeStyle = style;
  context.lineWidth = thickness;
  if (dash.length) {
    context.setLineDash([...dash]);
  }
  if (path) {
    context.stroke(path);
  } else {
    context.stroke();
  }
  if (dash.length) {
    context.setLineDash([]);
  }
}

/** Words whose baseline begins, or ends, at a point. */
export function write(
  context: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  font: string,
  style: string,
  align: CanvasTextAlign = 'left'
): void {
  context.font = font;
  context.fillStyle = style;
  context.textAlign = align;
  context.fillText(text, x, y);
}

function drawDiamond(context: CanvasRenderingContext2D, { x, y, radius, ink }: Diamond, theme: Theme): void {
  context.beginPath();
  context.moveTo(x, y - radius);
  context.lineTo(x + radius, y);
  context.lineTo(x, y + radius);
  context.lineTo(x - radius, y);
  context.closePath();
  fill(context, ink ? theme.inks[ink] : pattern(context, 'host', theme));
  stroke(context, theme.inks[ink ?? 'host'], 1.5);
}

function drawWords(context: CanvasRenderingContext2D, words: Words, theme: Theme): void {
  const { text, x, y, type, ink, align, upright } = words;
  context.textBaseline = 'alphabetic';
  if (!upright) {
    write(context, text, x, y, theme.fonts[type], theme.inks[ink], align);
    return;
  }
  context.save();
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  write(context, text, 0, 0, theme.fonts[type], theme.inks[ink], align);
  context.restore();
}

function drawStroke(context: CanvasRenderingContext2D, shape: Stroke, theme: Theme): void {
  const ink = theme.inks[shape.ink];
  stroke(context, ink, shape.thickness, shape.dash, new Path2D(shape.path));
  if (shape.arrow) {
    const { x, y, to } = shape.arrow;
    context.save();
    context.translate(x, y);
    context.rotate({ right: 0, down: Math.PI / 2, left: Math.PI }[to]);
    stroke(context, ink, 1.2, [], new Path2D('M-5 -3 0 0 -5 3'));
    context.restore();
  }
}

const CLUSTERS: Partial<Record<Mark, Ink>> = { c0: 'c0', c1: 'c1', c2: 'c2', c3: 'c3', c4: 'c4', c5: 'c5' };

/** What a mark that is no cluster's looks like: its edge, its ground, and what is on that, as lines or painted. */
export interface Look {
  ink: Ink;
  ground?: Ink;
  lines?: string;
  dash?: readonly number[];
  paint?: (context: CanvasRenderingContext2D, box: Box, ink: string) => void;
}

const LOOKS: Partial<Record<Mark, Look>> = {
  host: { ink: 'host', lines: 'M-1 1 5 7M1 -1 7 5' },
  op: { ink: 'line2', ground: 'sunk' },
  launch: { ink: 'line2', ground: 'sunk' }
};

/** Marks that only some pictures have: who draws them brings them along. */
export function addLooks(looks: Partial<Record<Mark, Look>>): void {
  Object.assign(LOOKS, looks);
}

/** Fills the current path. */
function fillMark(context: CanvasRenderingContext2D, box: Box, mark: Mark, theme: Theme): void {
  const { x, y, width, height } = box;
  const look = LOOKS[mark];
  if (!look) {
    fill(context, pattern(context, mark, theme));
    return;
  }
  const edge = theme.inks[look.ink];
  fill(context, look.lines ? pattern(context, mark, theme) : theme.inks[look.ground ?? 'bg']);
  look.paint?.(context, box, edge);
  if (width <= 2) {
    fill(context, edge);
  } else if (look.ground !== look.ink && !box.stroke) {
    context.beginPath();
    context.rect(x + 0.5, y + 0.5, width - 1, height - 1);
    stroke(context, edge, 1, look.dash);
  }
}

const TILE = 6;
/** Lines of each pattern on a tile of 6 by 6; the first is the solid one. */
const PATTERNS: Partial<Record<Mark, string>> = {
  c0: '',
  c1: 'M-1 5 5 -1M2 8 8 2',
  c2: 'M0 3h6',
  c3: '',
  c4: 'M3 0v6',
  c5: 'M0 3h6M3 0v6'
};

const tiles = new Map<string, HTMLCanvasElement>();
/** Of each context, because a pattern is drawn thousands of times between two changes of the theme. */
const patterns = new WeakMap<CanvasRenderingContext2D, Map<string, CanvasPattern>>();

/** The fill of a mark, for whoever draws without shapes. */
export function pattern(context: CanvasRenderingContext2D, mark: Mark, theme: Theme): CanvasPattern | string {
  const look = LOOKS[mark];
  const ink = theme.inks[look?.ink ?? CLUSTERS[mark] ?? 'line2'];
  if (mark === 'c0') {
    return ink;
  }
  const [ground, line] = look ? [theme.inks.bg, ink] : [ink, theme.inks.bg];
  const scale = context.getTransform().a || 1;
  const key = `${mark} ${ground} ${line} ${scale}`;
  const known = patterns.get(context) ?? new Map<string, CanvasPattern>();
  patterns.set(context, known);
  const ready = known.get(key);
  if (ready) {
    return ready;
  }
  let tile = tiles.get(key);
  if (!tile) {
    tile = document.createElement('canvas');
    tile.width = tile.height = Math.round(TILE * scale);
    const brush = tile.getContext('2d');
    if (brush) {
      brush.scale(tile.width / TILE, tile.height / TILE);
      brush.fillStyle = ground;
      brush.fillRect(0, 0, TILE, TILE);
      brush.strokeStyle = brush.fillStyle = line;
      brush.lineWidth = look?.ink === 'compile' ? 1 : 1.6;
      brush.stroke(new Path2D(look?.lines ?? PATTERNS[mark]));
      if (mark === 'c3') {
        for (const [x, y] of [
          [1.5, 1.5],
          [4.5, 4.5]
        ] as const) {
          brush.beginPath();
          brush.arc(x, y, 1, 0, 2 * Math.PI);
          brush.fill();
        }
      }
    }
    tiles.set(key, tile);
  }
  const made = context.createPattern(tile, 'repeat');
  if (!made) {
    return ink;
  }
  made.setTransform(new DOMMatrix().scale(TILE / tile.width));
  known.set(key, made);
  return made;
}
