import { h } from '../../base/dom';
import { arrayBytes, arrayType, bytes, sentence, whereOf } from '../../base/format';
import { put, type Links } from '../../report/links';
import { swatch } from '../../base/marks';
import { colorsOf } from '../../report/colors';
import type { Operation, Report } from '../../report/report';
import type { SectionContext } from '../../panel/section';
import { askable, type Ask } from './ask';
import { askButtons, coded } from './cards';

/** Writes into the card what a thing is and what can be asked of it; false where there is nothing to say. */
export function fillCard(
  card: HTMLElement,
  report: Report,
  { selection: { links }, kernel }: SectionContext,
  id: string,
  ask: (ask: Ask) => void,
  byKey: boolean
): boolean {
  const about = links && askable(report, links, id);
  if (!links || !about || (about.asks.length === 0 && links.of(id).kind !== 'op')) {
    return false;
  }
  const op = links.of(id).kind === 'op' ? links.op(id) : undefined;
  card.setAttribute('aria-label', `${about.title}, ${about.facts}`);
  card.replaceChildren(
    h(
      'div.jl-card-head',
      swatch(markOf(report, links, id)),
      h('b', about.title),
      h('span.jl-muted.jl-grow', about.facts)
    ),
    ...(op
      ? factsOf(report, links, op).map(([text, code]) => h(code ? 'code' : 'div', {}, code ? text : coded(text)))
      : []),
    askButtons(about.asks, kernel !== null, ask),
    h(
      'div.jl-note.jl-muted',
      about.asks.length === 0
        ? about.hint
        : kernel
          ? `${about.asks.length > 1 ? 'Each builds' : 'Builds'} both plans and measures them.${byKey ? ' Enter starts the one that is framed; arrows choose.' : ''}`
          : 'Measuring needs the kernel that ran this cell.'
    )
  );
  return true;
}

/** Pure: shape and dtype, its bytes, what it shares a kernel with; [text, whether it is code]. */
export function factsOf(report: Report, links: Links, op: Operation): [string, boolean][] {
  const id = links.idOf(op.name, op.plan);
  const inputs = op.inputs.map(input => links.op(links.idOf(input, op.plan))).filter(input => input !== undefined);
  const readers = links
    .readersOf(id)
    .map(reader => links.op(reader))
    .filter(reader => reader !== undefined);
  const from = [...new Set(inputs.map(input => arrayType(input.dtype, input.shape)))].join(', ');
  const type = arrayType(op.dtype, op.shape);
  const size = arrayBytes(op.dtype, op.shape);
  const fused = [...inputs, ...readers].filter(other => other.kernel !== null && other.kernel === op.kernel);
  const temporary = report.temporaries.find(({ plan, name }) => plan === op.plan && name === op.name);
  return [
    [from ? `${from} → ${type}` : type, true],
    size !== null && op.shape.length > 0 ? [`Its value is ${bytes(size)}.`, false] : null,
    temporary?.reason ? [`Stored: ${sentence(temporary.reason.text)}`, false] : null,
    fused.length ? [`Fused with ${named(fused)}.`, false] : null,
    op.reason ? [sentence(`Runs in NumPy: ${op.reason.text}`), false] : null,
    [`In the graph: ${op.name} (${op.op})`, false]
  ].filter(fact => fact !== null) as [string, boolean][];
}

/** "Sub (line 4), Sum and Div (line 6)" */
function named(ops: readonly Operation[]): string {
  const byLine = new Map<string, string[]>();
  for (const op of new Set(ops)) {
    put(byLine, whereOf(op), op.written);
  }
  return [...byLine].map(([where, names]) => `${names.join(' and ')}${where ? ` (${where})` : ''}`).join(', ');
}

function markOf(report: Report, links: Links, id: string): number | string {
  const [cluster] = links.of(id).clusters;
  const found = cluster === undefined ? undefined : links.cluster(cluster);
  const [kernel] = links.of(id).kernels;
  const own = kernel === undefined ? undefined : links.kernel(kernel);
  return found
    ? (colorsOf(report)(found.name, own?.name ?? null) ?? found.color)
    : report.clusters.length
      ? 'host'
      : 'op';
}
