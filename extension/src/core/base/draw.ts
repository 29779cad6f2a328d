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
    context.globalAlpha = box.opacity ?? 1;
    context.fillStyle = theme.inks[box.fill];
    context.fill();
    context.globalAlpha = 1;
  }
  if (box.tint) {
    context.globalAlpha = theme.tint;
    context.fillStyle = theme.inks[box.tint];
    context.fill();
    context.globalAlpha = 1;
  }
  if (box.mark) {
    fillMark(context, box, box.mark, theme);
  }
  if (box.stroke) {
    context.strokeStyle = theme.inks[box.stroke];
    context.lineWidth = box.thickness ?? 1;
    dashed(context, box.dash, () => context.stroke());
  }
}

function dashed(context: CanvasRenderingContext2D, dash: readonly number[] | undefined, stroke: () => void): void {
  if (dash) {
    context.setLineDash([...dash]);
  }
  stroke();
  if (dash) {
    context.setLineDash([]);
  }
}

function drawDiamond(context: CanvasRenderingContext2D, { x, y, radius, ink }: Diamond, theme: Theme): void {
  context.beginPath();
  context.moveTo(x, y - radius);
  context.lineTo(x + radius, y);
  context.lineTo(x, y + radius);
  context.lineTo(x - radius, y);
  context.closePath();
  context.fillStyle = ink ? theme.inks[ink] : pattern(context, 'host', theme);
  context.fill();
  context.strokeStyle = theme.inks[ink ?? 'host'];
  context.lineWidth = 1.5;
  context.stroke();
}

function drawWords(context: CanvasRenderingContext2D, words: Words, theme: Theme): void {
  context.font = theme.fonts[words.type];
  context.fillStyle = theme.inks[words.ink];
  context.textAlign = words.align ?? 'left';
  context.textBaseline = 'alphabetic';
  if (!words.upright) {
    context.fillText(words.text, words.x, words.y);
    return;
  }
  context.save();
  context.translate(words.x, words.y);
  context.rotate(-Math.PI / 2);
  context.fillText(words.text, 0, 0);
  context.restore();
}

function drawStroke(context: CanvasRenderingContext2D, stroke: Stroke, theme: Theme): void {
  context.strokeStyle = theme.inks[stroke.ink];
  context.lineWidth = stroke.thickness ?? 1;
  dashed(context, stroke.dash, () => context.stroke(new Path2D(stroke.path)));
  if (stroke.arrow) {
    const { x, y, to } = stroke.arrow;
    context.save();
    context.lineWidth = 1.2;
    context.translate(x, y);
    context.rotate({ right: 0, down: Math.PI / 2, left: Math.PI }[to]);
    context.stroke(new Path2D('M-5 -3 0 0 -5 3'));
    context.restore();
  }
}

const CLUSTERS: Partial<Record<Mark, Ink>> = { c0: 'c0', c1: 'c1', c2: 'c2', c3: 'c3', c4: 'c4', c5: 'c5' };

/** Fills the current path. Compile time is one grey; its stage is the pattern: capture open, passes lined, quick tier half full, good tier full. */
function fillMark(context: CanvasRenderingContext2D, box: Box, mark: Mark, theme: Theme): void {
  const grey = theme.inks.compile;
  if (CLUSTERS[mark] || mark === 'host' || mark === 'passes') {
    context.fillStyle = pattern(context, mark, theme);
    context.fill();
  } else if (mark === 'codegen') {
    context.fillStyle = grey;
    context.fill();
  } else {
    context.fillStyle = mark === 'op' || mark === 'statement' || mark === 'copy' ? theme.inks.sunk : theme.inks.bg;
    context.fill();
  }
  if (mark === 'quick') {
    context.fillStyle = grey;
    context.fillRect(box.x, box.y + box.height / 2, box.width, box.height / 2);
  }
  if (!CLUSTERS[mark] && mark !== 'codegen' && !box.stroke && box.width > 2) {
    context.strokeStyle = mark === 'host' ? theme.inks.host : mark === 'op' ? theme.inks.line2 : grey;
    context.lineWidth = 1;
    dashed(context, mark === 'statement' || mark === 'load' ? [2, 2] : undefined, () =>
      context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1)
    );
  } else if (!CLUSTERS[mark] && box.width <= 2) {
    context.fillStyle = mark === 'host' ? theme.inks.host : mark === 'op' ? theme.inks.line2 : grey;
    context.fill();
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
  c5: 'M0 3h6M3 0v6',
  host: 'M-1 1 5 7M1 -1 7 5',
  passes: 'M1.5 0v6M4.5 0v6'
};

const tiles = new Map<string, HTMLCanvasElement>();
/** Of each context, because a pattern is drawn thousands of times between two changes of the theme. */
const patterns = new WeakMap<CanvasRenderingContext2D, Map<string, CanvasPattern>>();

/** The fill of a mark, for whoever draws without shapes. */
export function pattern(context: CanvasRenderingContext2D, mark: Mark, theme: Theme): CanvasPattern | string {
  const ink = theme.inks[CLUSTERS[mark] ?? (mark === 'host' ? 'host' : 'compile')];
  if (mark === 'c0') {
    return ink;
  }
  const open = mark === 'host' || mark === 'passes';
  const [ground, line] = open ? [theme.inks.bg, ink] : [ink, theme.inks.bg];
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
      brush.lineWidth = mark === 'passes' ? 1 : 1.6;
      brush.stroke(new Path2D(PATTERNS[mark]));
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
