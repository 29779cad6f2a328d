import { h } from './dom';
import { draw } from './draw';
import { canvasMeasure, readTheme, themeKey, type Theme } from './theme';
import type { Measure, Picture } from './shapes';

/** What a picture that moves is drawn with, frame after frame. */
export interface Brush {
  context: CanvasRenderingContext2D;
  measure: Measure;
  theme: Theme;
}

/** A canvas that is sharp on any screen and takes its colours from the page. */
export class CanvasView {
  readonly element: HTMLCanvasElement;

  constructor(attributes: Record<string, string>) {
    this.element = h('canvas.jl-canvas', { ...attributes });
  }

  /** What layouts measure text with; null where there is no canvas to draw on. `again`: the page has not changed since. */
  prepare(again = false): Measure | null {
    const context = this.element.getContext('2d');
    if (!context || !this.element.isConnected) {
      return null;
    }
    const parent = this.element.parentElement ?? document.body;
    const key = again ? this.themeKey : themeKey(parent);
    if (key !== this.themeKey || !this.theme || !this.measure) {
      this.themeKey = key;
      const theme = readTheme(parent);
      if (!this.measure || theme.fonts.body !== this.theme?.fonts.body) {
        this.measure = canvasMeasure(context, theme);
      }
      this.theme = theme;
    }
    return this.measure;
  }

  paint(picture: Picture): void {
    const brush = this.begin(picture.width, picture.height);
    if (brush) {
      draw(brush.context, picture.shapes, brush.theme);
    }
  }

  /** An empty canvas of this size; it keeps its memory where the size has not changed. */
  begin(width: number, height: number): Brush | null {
    const context = this.element.getContext('2d');
    if (!context || !this.theme || !this.measure) {
      return null;
    }
    const scale = Math.max(1, Math.min(window.devicePixelRatio || 1, MOST_PIXELS / Math.max(1, height)));
    const [wide, tall] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.element.width !== wide || this.element.height !== tall) {
      this.element.width = wide;
      this.element.height = tall;
      this.element.style.width = `${width}px`;
      this.element.style.height = `${height}px`;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, wide, tall);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return { context, measure: this.measure, theme: this.theme };
  }

  private theme: Theme | null = null;
  private themeKey = '';
  private measure: Measure | null = null;
}

/** The tallest canvas that every browser draws. */
const MOST_PIXELS = 16_000;
