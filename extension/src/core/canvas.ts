import { h } from './dom';
import { draw } from './draw';
import { canvasMeasure, readTheme, type Theme } from './theme';
import type { Measure, Picture } from './shapes';

/** A canvas that is sharp on any screen and takes its colours from the page. */
export class CanvasView {
  readonly element: HTMLCanvasElement;

  constructor(attributes: Record<string, string>) {
    this.element = h('canvas', { class: 'jl-canvas', ...attributes });
  }

  /** What layouts measure text with; null where there is no canvas to draw on. */
  prepare(): Measure | null {
    const context = this.element.getContext('2d');
    if (!context || !this.element.isConnected) {
      return null;
    }
    this.theme = readTheme(this.element.parentElement ?? document.body);
    return canvasMeasure(context, this.theme);
  }

  paint(picture: Picture): void {
    const context = this.element.getContext('2d');
    if (!context || !this.theme) {
      return;
    }
    const scale = Math.max(1, Math.min(window.devicePixelRatio || 1, MOST_PIXELS / Math.max(1, picture.height)));
    this.element.width = Math.round(picture.width * scale);
    this.element.height = Math.round(picture.height * scale);
    this.element.style.width = `${picture.width}px`;
    this.element.style.height = `${picture.height}px`;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    draw(context, picture.shapes, this.theme);
  }

  private theme: Theme | null = null;
}

/** The tallest canvas that every browser draws. */
const MOST_PIXELS = 16_000;
