import { h } from '../dom';
import { duration, some } from '../format';
import { swatch } from '../marks';
import type { PreparedLane } from './layout';

const MOST_ROWS = 500;

/** Every span as a row, lane after lane; of very many the longest. */
export function timelineTable(lanes: readonly PreparedLane[]): HTMLTableElement {
  const bodies = lanes.map(lane => {
    const all = lane.spans.map((span, index) => ({ span, mark: lane.marks[index] ?? 'op' }));
    const kept = new Set([...all].sort((a, b) => b.span.duration - a.span.duration).slice(0, MOST_ROWS));
    const left = all.length - kept.size;
    const longest = left > 0 ? `, the ${MOST_ROWS} longest of ${all.length} spans` : '';
    const note = longest + (lane.dropped ? `; ${some(lane.dropped, 'earlier span')} not kept` : '');
    return h(
      'tbody',
      {},
      h('tr', {}, h('th', { colspan: 3, scope: 'rowgroup' }, `${lane.name}${note}`)),
      all
        .filter(row => kept.has(row))
        .map(({ span, mark }) =>
          h(
            'tr',
            {},
            h(
              'td',
              {},
              swatch(mark),
              ` ${span.label || span.name}`,
              span.label && span.label !== span.name ? h('span', { class: 'jl-muted' }, ` ${span.name}`) : null
            ),
            h('td', { class: 'jl-number' }, duration(span.start / 1e6)),
            h('td', { class: 'jl-number' }, duration(span.duration / 1e6))
          )
        )
    );
  });
  const head = ['span', 'start', 'time'].map((name, index) =>
    h('th', { scope: 'col', class: index ? 'jl-number' : null }, name)
  );
  return h('table', { 'aria-label': 'Timeline' }, h('thead', {}, h('tr', {}, head)), bodies);
}
