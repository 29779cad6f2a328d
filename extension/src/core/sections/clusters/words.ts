import {
  arrayType,
  bytes,
  duration,
  joined,
  lines,
  percent,
  sentence,
  sentences,
  some,
  whereOf
} from '../../base/format';
import { closeness } from '../../report/numerics';
import type { Boundary, Kernel, Launch, Operation } from '../../report/report';
import type { FlowEdge, FlowKernel, FlowNode } from './map/boxes';

/** What a reader hears of an operation, and the line below the picture when it is pinned. */
export function describe(op: Operation): string {
  const where = [whereOf(op), op.kernel, op.cluster ?? 'run by NumPy'];
  const reason = op.reason ? ` ${sentence(op.reason.text)}` : '';
  return `${said(op)}, ${joined(', ', ...where)}: ${arrayType(op.dtype, op.shape)}.${reason}`;
}

/** The name and the expression, as the program has them. */
export function said({ called, written }: Operation): string {
  return isName(called) && called !== written ? `${called} = ${written}` : written;
}

function isName(text: string): boolean {
  return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text);
}

/** How often a loop turns, in words; "" where that is not known. */
export function turnsOf(op: Operation | null | undefined): string {
  if (!op || op.iterations === null) {
    return op?.endsEarly ? 'until its test says no' : '';
  }
  return (op.endsEarly ? 'at most ' : '') + some(op.iterations, 'iteration');
}

/** Longer expressions are too wide for a box. */
const WIDEST = 18;

/** `X @ W` in a box; of a longer expression what its value is called, and what is done: `inv6 · /`. */
export function labelOf({ called, written, word }: Operation): string {
  return written.length <= WIDEST ? written : isName(called) && called.length <= WIDEST ? `${called} · ${word}` : word;
}

/** A change that joins the two and saves no memory traffic is no advice. */
const FOR_NOTHING = 'twice_for_nothing';

export interface BoundaryTexts {
  head: string;
  why: string;
  flip: string;
}

/** Two kernels of one cluster, or two boxes, that share a value and are not joined: bytes, why, what would flip it; or what is
 * told of all edges of one reason. */
export function boundaryTexts(boundary: Boundary, apart: 'kernels' | 'boxes' = 'kernels'): BoundaryTexts {
  if (boundary.told) {
    return { head: `Not fused: ${boundary.told}`, why: '', flip: '' };
  }
  const { text, clause, rest, sizeIn } = boundary.reason;
  const size = bytes(boundary.bytes);
  const word = apart === 'kernels' ? `Not fused: ${boundary.pair ? boundary.pair + ': ' : ''}` : '';
  const flip = boundary.flip?.code === FOR_NOTHING ? '' : (boundary.flip?.text ?? '');
  return {
    head: word + (clause || text) + (size && !sizeIn ? `, ${size}` : ''),
    why: sentence(rest),
    flip: flip && sentence(`Would fuse if ${flip}`)
  };
}

/** The same words are said once, however many values they are true of; small values are counted alone. `said`: what was. */
export function distinctTexts(
  boundaries: readonly Boundary[],
  apart: 'kernels' | 'boxes',
  said = new Set<string>()
): [BoundaryTexts, Boundary][] {
  return [...boundaries]
    .sort((a, b) => b.bytes - a.bytes)
    .flatMap(boundary => {
      const texts = boundaryTexts(boundary, apart);
      const key = texts.head.replace(boundary.pair, '') + texts.why + texts.flip;
      return boundary.small || said.has(key) ? [] : (said.add(key), [[texts, boundary]]);
    });
}

export function clusterFacts(node: FlowNode): string {
  const { cluster } = node;
  const facts = [some(node.count, 'operation'), some(node.kernelCount, 'kernel')];
  if (node.calls > 1) {
    facts.push(some(node.calls, 'call') + (node.seconds === null ? '' : ` of ${duration(node.seconds / node.calls)}`));
  }
  const traffic = joined(
    ', ',
    cluster?.bytesRead ? `reads ${bytes(cluster.bytesRead)}` : '',
    cluster?.bytesWritten ? `writes ${bytes(cluster.bytesWritten)}` : ''
  );
  const near = node.checked.every(({ ok }) => ok) ? closeness(node.checked) : '';
  return joined(' · ', ...facts, traffic && traffic + each(cluster, node.calls), memoryText(node), near);
}

/** "3 intermediate arrays stored, 4.8 MB": those that stay within the cluster. */
function memoryText({ reaching: { count, bytes: whole } }: FlowNode): string {
  return count ? `${some(count, 'intermediate array')} stored${whole ? `, ${bytes(whole)}` : ''}` : '';
}

/** What a check found wrong with a cluster's numbers; "" where nothing is. */
export function wrongText({ checked }: FlowNode): string {
  return checked.every(({ ok }) => ok) ? '' : sentence(closeness(checked).replace(/^o/, 'O'));
}

export function hostFacts(node: FlowNode): string[] {
  const reasons = [...new Set(node.ops.map(op => op.reason?.text ?? '').filter(Boolean))];
  const names = node.ops.length > 1 ? [[...new Set(node.ops.map(op => op.written))].join(', ')] : [];
  const shown = reasons.slice(0, 2).map(reason => sentence(`Runs in NumPy: ${reason}`));
  return [
    ...(shown.length ? shown : ['Runs in NumPy.']),
    ...names,
    ...(node.calls > 1 ? [some(node.calls, 'call')] : [])
  ];
}

export function kernelFacts({ kernel }: FlowKernel, wide: boolean): [string, string] {
  const moved = kernel.bytesRead + kernel.bytesWritten;
  const facts = [kernel.kind === 'library' ? 'library call' : '', ...boundFacts(kernel)];
  if (wide && kernel.seconds && moved && kernel.ofPeak !== null && kernel.bound === 'memory') {
    facts.push(`${bytes((moved * Math.max(1, kernel.calls)) / kernel.seconds)}/s`);
  }
  return [joined(' · ', ...facts), moved ? bytes(moved) + each(kernel, kernel.calls) : ''];
}

/** Times are of all calls, bytes of one. */
const each = (of: { perTurn: boolean } | null, calls: number): string =>
  of?.perTurn ? ' an iteration' : calls > 1 ? ' a call' : '';

/** What reaches less of its peak is bound by something else. */
const LOW = 0.25;

function boundFacts({ bound, ofPeak }: Kernel): string[] {
  if (!bound || ofPeak === null) {
    return [bound === 'cache' ? 'in cache' : bound ? `${bound}-bound` : ''];
  }
  return ofPeak < LOW ? [] : [`${bound}-bound`, `${percent(ofPeak)} of peak`];
}

/** What a kernel was launched with on a GPU: of several parts the largest; "" of another kernel. */
export function launchText({ launches = [] }: Kernel): string {
  const sizeOf = ({ grid, threads }: Launch): number => grid.reduce((size, count) => size * count, threads);
  const [largest, ...more] = [...launches].sort((a, b) => sizeOf(b) - sizeOf(a));
  if (!largest) {
    return '';
  }
  const { grid, threads, registers, sharedBytes, spilledBytes, occupancy, limitedBy, simulated } = largest;
  return joined(
    ' · ',
    simulated && 'simulated GPU',
    `${grid.filter((count, axis) => axis === 0 || count !== 1).join(' × ')} blocks of ${threads} threads`,
    registers !== null && some(registers, 'register'),
    sharedBytes ? `${bytes(sharedBytes)} shared` : '',
    occupancy !== null && `${percent(occupancy)} occupancy, limited by ${limitedBy}`,
    spilledBytes ? `${bytes(spilledBytes)} a thread spilled` : '',
    more.length > 0 && `${more.length + 1} launches`
  );
}

/** A kernel's time in words; one that the processor ran in the place of a GPU says so. */
export function timeOf({ seconds, launches }: Kernel): string {
  const time = seconds === null ? '' : duration(seconds);
  // eslint-disable-next-line no-unused-labels
  KERNEL: if (time && launches?.some(({ simulated }) => simulated)) {
    return `${time}, simulated`; // a widget says less of kernels on a GPU
  }
  return time;
}

export function nodeLabel(node: FlowNode): string {
  const time = node.seconds === null ? '' : `, ${duration(node.seconds)}`;
  const facts = node.cluster ? clusterFacts(node) : hostFacts(node).join(' ');
  const apart = node.boundaries.map(boundary => boundaryTexts(boundary, 'boxes').head);
  return sentences(
    `${node.name}, ${lines(node.lines)}${time}`,
    facts.replaceAll(' · ', ', '),
    wrongText(node),
    ...apart
  );
}

export function kernelLabel(part: FlowKernel): string {
  const time = timeOf(part.kernel);
  const names = part.ops.map(op => op.word).join(', ');
  let facts = joined(', ', ...kernelFacts(part, true));
  // eslint-disable-next-line no-unused-labels
  KERNEL: facts = joined(', ', facts, launchText(part.kernel));
  const head = joined(', ', `Kernel ${part.kernel.name}`, lines(part.kernel.lines), time);
  return sentences(head, facts.replaceAll(' · ', ', '), names);
}

export function edgeLabel(edge: FlowEdge): string {
  const size = edge.bytes === null ? '' : `  ${bytes(edge.bytes)}`;
  return `${edge.name}${size}${edge.more ? `, ${edge.more} more` : ''}`;
}

export function firstLine(code: string): string {
  return code.split('\n', 1)[0] ?? '';
}

export function scopeOf(ops: readonly Operation[]): string {
  return ops.find(op => op.scope)?.scope ?? '';
}
