import { bytes, duration, lineRanges, some } from '../format';
import { h } from '../dom';
import { swatch } from '../marks';
import { headOf, type Flow } from './flow';
import { distinctTexts } from './words';

const MOST_NAMES = 40;

/** The same boxes as rows: every cluster, kernel and host operation, with what keeps them apart. */
export function clustersTable(flow: Flow): HTMLTableElement {
  const rows: HTMLTableRowElement[] = [];
  for (const part of flow.parts) {
    const head = headOf(part, flow);
    if (head) {
      rows.push(h('tr', {}, h('th', { colspan: 5, scope: 'colgroup' }, head)));
    }
    for (const node of part.nodes) {
      const apart = distinctTexts(node.boundaries, 'boxes').map(([{ head }]) => head);
      const about = node.cluster
        ? [node.kernels.map(({ kernel }) => kernel.name).join(' '), ...apart]
        : [...new Set(node.ops.map(op => op.reason?.text ?? '')), ...apart];
      rows.push(
        row(
          [swatch(node.cluster ? node.cluster.color : 'host'), ' ', h('b', {}, node.name)],
          node.lines,
          node.ops.length,
          node.seconds,
          about.filter(Boolean).join('. ')
        )
      );
      for (const { kernel, ops, boundaries } of node.kernels) {
        const names = ops
          .slice(0, MOST_NAMES)
          .map(op => op.op)
          .join(' ');
        const rest = ops.length > MOST_NAMES ? ` and ${some(ops.length - MOST_NAMES, 'more operation')}` : '';
        const moved = (kernel.bytesRead ?? 0) + (kernel.bytesWritten ?? 0);
        const text = [
          names + rest,
          moved ? bytes(moved) : '',
          ...distinctTexts(boundaries, 'kernels').map(([{ head }]) => head)
        ];
        const line = row([kernel.name], kernel.lines, ops.length, kernel.seconds, text.filter(Boolean).join('. '));
        line.firstElementChild?.classList.add('jl-indented');
        rows.push(line);
      }
    }
  }
  for (const { text, reason, lines, seconds } of flow.statements) {
    rows.push(
      row(
        [swatch('statement'), ' ', h('code', {}, text)],
        lines.map(position => position.line),
        0,
        seconds,
        `Run by Python: ${reason?.text ?? ''}`
      )
    );
  }
  const head = ['name', 'lines', 'ops', 'time', 'kernels, reason'].map((name, index) =>
    h('th', { scope: 'col', class: index === 2 || index === 3 ? 'jl-number' : null }, name)
  );
  return h('table', { 'aria-label': 'Clusters' }, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows));
}

function row(
  name: (Node | string)[],
  lines: readonly number[],
  ops: number,
  seconds: number | null,
  about: string
): HTMLTableRowElement {
  return h(
    'tr',
    {},
    h('td', {}, name),
    h('td', {}, lineRanges(lines)),
    h('td', { class: 'jl-number' }, String(ops)),
    h('td', { class: 'jl-number' }, seconds === null ? '' : duration(seconds)),
    h('td', {}, about)
  );
}
