import { CanvasView } from '../../../base/canvas';
import { h, on } from '../../../base/dom';
import type { Area } from './labels';
import type { Scene } from './scene';
import { inkOf, type Viewport } from './scene-draw';
import type { TreeNode } from '../tree';

const WIDTH = 132;
const HEIGHT = 96;
/** Beside it, with its frame. */
const MARGIN = 10;
/** The least that is seen of the part on the screen. */
const LEAST = 4;

export interface MinimapPlace {
  /** Pixels of the small picture a unit of the scene. */
  scale: number;
  width: number;
  height: number;
  /** What the screen shows, in pixels of the small picture. */
  view: { left: number; top: number; width: number; height: number };
}

/** Pure: where the small picture and the frame in it lie; null where the screen shows the whole graph. */
export function minimapPlace(
  scene: { width: number; height: number },
  view: Viewport,
  screen: { width: number; height: number }
): MinimapPlace | null {
  const [wide, tall] = [screen.width / view.scale, screen.height / view.scale];
  const whole = view.x <= 1 && view.y <= 1 && view.x + wide >= scene.width - 1 && view.y + tall >= scene.height - 1;
  if (whole || scene.width <= 0 || scene.height <= 0) {
    return null;
  }
  const scale = Math.min(WIDTH / scene.width, HEIGHT / scene.height);
  const [width, height] = [scene.width * scale, scene.height * scale];
  const within = (at: number, size: number, room: number): [number, number] => {
    const from = Math.max(0, Math.min(room - LEAST, at * scale));
    return [from, Math.max(LEAST, Math.min(room, (at + size) * scale) - from)];
  };
  const [left, frameWidth] = within(view.x, wide, width);
  const [top, frameHeight] = within(view.y, tall, height);
  return { scale, width, height, view: { left, top, width: frameWidth, height: frameHeight } };
}

/** The whole graph in a corner of the map, with a frame around what the screen shows; a click or a drag moves there. */
export class Minimap {
  /** The map's own keys go to every box: this picture is for the pointer alone. */
  readonly element = h('div.jl-minimap', { 'aria-hidden': 'true', hidden: true });

  /** `move`: to a point of the scene. */
  constructor(private readonly move: (x: number, y: number) => void) {
    this.element.append(this.canvas.element, this.frame);
    const go = (event: PointerEvent): void => {
      const { left, top } = this.element.getBoundingClientRect();
      if (this.scale > 0) {
        this.move((event.clientX - left) / this.scale, (event.clientY - top) / this.scale);
      }
    };
    on(this.element, {
      pointerdown: event => {
        event.stopPropagation(); // the map behind it is not dragged
        this.element.setPointerCapture(event.pointerId);
        go(event);
      },
      pointermove: event => {
        event.stopPropagation();
        if (event.buttons) {
          go(event);
        }
      },
      click: event => event.stopPropagation(),
      dblclick: event => event.stopPropagation()
    });
  }

  /** What it covers of a screen: its corner. */
  areaOf(scene: Scene, view: Viewport, screen: { width: number; height: number }): Area | null {
    const place = minimapPlace(scene, view, screen);
    return (
      place && {
        ...{ x: screen.width - place.width - MARGIN, y: screen.height - place.height - MARGIN },
        ...{ width: place.width + MARGIN, height: place.height + MARGIN }
      }
    );
  }

  /** `lit`: where what is pointed at lies; null: only the viewport has moved, so the frame alone follows. */
  show(
    scene: Scene,
    view: Viewport,
    screen: { width: number; height: number },
    heat: (box: TreeNode) => number | null,
    lit: readonly TreeNode[] | null
  ): void {
    const place = minimapPlace(scene, view, screen);
    const wasHidden = this.element.hidden;
    this.element.hidden = place === null;
    if (!place) {
      return;
    }
    this.lit = lit ?? this.lit;
    if (lit || wasHidden || place.scale !== this.scale) {
      this.scale = place.scale;
      this.paint(scene, place, heat);
    }
    const { left, top, width, height } = place.view;
    Object.assign(this.frame.style, {
      width: `${width}px`,
      height: `${height}px`,
      transform: `translate(${left}px, ${top}px)`
    });
  }

  /** Boxes without the operations in them: of what is open and holds several, those. */
  private paint(scene: Scene, { scale, width, height }: MinimapPlace, heat: (box: TreeNode) => number | null): void {
    const brush = this.canvas.prepare() && this.canvas.begin(width, height);
    if (!brush) {
      return;
    }
    const { context, theme } = brush;
    const group = (parent: TreeNode | null, left: number, top: number): void => {
      const layout = scene.layoutOf(parent);
      scene.childrenOf(parent).forEach((box, index) => {
        const [wide, tall] = scene.sizeOf(box);
        const [x, y] = [left + (layout?.x[index] ?? 0), top + (layout?.y[index] ?? 0)];
        const inside =
          scene.isOpen(box) && scene.childrenOf(box).some(({ group }) => group) ? scene.originOf(box) : null;
        if (inside) {
          group(box, inside.x, inside.y);
          return;
        }
        const hot = heat(box);
        context.globalAlpha = hot === null ? 0.45 : 0.25 + 0.75 * hot;
        context.fillStyle = theme.inks[inkOf(box)];
        context.fillRect(x * scale, y * scale, Math.max(1, wide * scale), Math.max(1, tall * scale));
      });
    };
    group(null, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = theme.inks.link;
    for (const box of this.lit) {
      const rect = scene.shownRectOf(box);
      if (rect) {
        const [wide, tall] = [Math.max(LEAST, rect.width * scale), Math.max(LEAST, rect.height * scale)];
        context.fillRect(rect.x * scale, rect.y * scale, wide, tall);
      }
    }
  }

  private readonly canvas = new CanvasView({});
  private readonly frame = h('div.jl-minimap-frame');
  private scale = 0;
  private lit: readonly TreeNode[] = [];
}
