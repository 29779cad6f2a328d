import { h } from './dom';
import { clusterMark } from './shapes';

/** A small square (for the host a diamond) in a mark's colour and pattern: what the tables and legends show. */
export function swatch(mark: number | string): HTMLSpanElement {
  const name = typeof mark === 'number' ? clusterMark(mark) : mark;
  return h('span.jl-swatch', { 'data-mark': name, 'aria-hidden': 'true' });
}
