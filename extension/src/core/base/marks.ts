import { h } from './dom';

/** A small square (for the host a diamond) in a mark's colour and pattern: what the tables and legends show. */
export function swatch(mark: number | string): HTMLSpanElement {
  const name = typeof mark === 'number' ? `c${mark % 6}` : mark;
  return h('span.jl-swatch', { 'data-mark': name, 'aria-hidden': 'true' });
}
