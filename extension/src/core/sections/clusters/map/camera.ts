import type { Rect } from './scene';
import type { Viewport } from './scene-draw';

const CLOSEST = 2;
const FARTHEST = 0.01;
/** From here on names have room in their boxes. */
const READABLE = 0.75;
/** What would be smaller than this is no graph to be read, but to be looked at as a whole. */
const LEAST_READ = 0.3;

/** Pure: the scale at which a graph is first seen that would fit in at this one. */
export function firstScale(fit: number): number {
  return fit < LEAST_READ ? fit : Math.max(fit, READABLE);
}

interface Point {
  x: number;
  y: number;
}

interface Size {
  width: number;
  height: number;
}

/** Pure: which part of a scene is seen on a screen, and how large. */
export class Camera implements Viewport {
  /** Of the scene, what is at the screen's corner. */
  x = 0;
  y = 0;
  scale = 1;
  /** Nobody has moved it since the whole scene was fitted in. */
  fitted = true;

  /** The whole scene, in the middle, and never larger than it is. */
  fit(scene: Size, screen: Size): void {
    const scale = Math.min(1, (screen.width - 16) / scene.width, (screen.height - 16) / scene.height);
    this.scale = Math.max(FARTHEST, Number.isFinite(scale) ? scale : 1);
    const [wide, tall] = [screen.width / this.scale, screen.height / this.scale];
    const middle = scene.height / 2 - tall / 2;
    this.x = scene.width / 2 - wide / 2;
    this.y = scene.height < tall ? middle : Math.min(middle, Math.max(-8 / this.scale, 0));
    this.fitted = true;
  }

  /** As much of the scene as can be read, from its left upper corner; of a large one the whole. */
  begin(scene: Size, screen: Size): void {
    this.fit(scene, screen);
    const scale = firstScale(this.scale);
    if (scale > this.scale) {
      const from = (whole: number, room: number): number =>
        whole * scale > room - 16 ? -8 / scale : (whole - room / scale) / 2;
      this.scale = scale;
      [this.x, this.y] = [from(scene.width, screen.width), from(scene.height, screen.height)];
    }
  }

  pan(dx: number, dy: number): void {
    this.x += dx / this.scale;
    this.y += dy / this.scale;
    this.fitted = false;
  }

  /** Around a point of the screen. */
  zoom(factor: number, at: Point): void {
    const scale = Math.max(FARTHEST, Math.min(CLOSEST, this.scale * factor));
    this.x += at.x / this.scale - at.x / scale;
    this.y += at.y / this.scale - at.y / scale;
    this.scale = scale;
    this.fitted = false;
  }

  /** So that a corner is at a point of the screen. */
  place(corner: Point, at: Point): void {
    this.x = corner.x - at.x / this.scale;
    this.y = corner.y - at.y / this.scale;
    this.fitted = false;
  }

  /** So that a point of the scene is in the middle. */
  centre(point: Point, screen: Size): void {
    this.x = point.x - screen.width / 2 / this.scale;
    this.y = point.y - screen.height / 2 / this.scale;
    this.fitted = false;
  }

  /** A box in the middle, large enough to be read; of a tall one its head. */
  locate(rect: Rect, screen: Size): void {
    this.scale = Math.max(this.scale, 0.8);
    const tall = Math.min(rect.height, screen.height / this.scale);
    this.centre({ x: rect.x + rect.width / 2, y: rect.y + tall / 2 }, screen);
  }

  /** Moves only where the box's head is out of sight. */
  reveal(rect: Rect, screen: Size): void {
    const { x, y } = this.toScreen(rect);
    const [wide, tall] = [rect.width * this.scale, rect.height * this.scale];
    if (x < 0 || y < 0 || x + Math.min(wide, 60) > screen.width || y + Math.min(tall, 24) > screen.height) {
      this.pan(
        x + Math.min(wide, screen.width) / 2 - screen.width / 2,
        y + Math.min(tall, screen.height) / 2 - screen.height / 2
      );
    }
  }

  /** Whether some of a box is on the screen. */
  sees(rect: Rect, screen: Size): boolean {
    const { x, y } = this.toScreen(rect);
    return x < screen.width && y < screen.height && x + rect.width * this.scale > 0 && y + rect.height * this.scale > 0;
  }

  toScreen({ x, y }: Point): Point {
    return { x: (x - this.x) * this.scale, y: (y - this.y) * this.scale };
  }

  toScene({ x, y }: Point): Point {
    return { x: this.x + x / this.scale, y: this.y + y / this.scale };
  }
}
