import type { FlowKernel, FlowNode } from '../clusters/map/boxes';
import { flowOf, type Flow } from '../clusters/flow';
import { duration, fileName, lines as lineText, some } from '../../base/format';
import { HOLLOW } from '../../base/shapes';
import { lineId } from '../../report/links';
import type { Position, Report } from '../../report/report';

/** What holds the lines of one kernel together: its first line, the others, its last, and lines between that are not its own. */
export interface Bracket {
  edge: 'first' | 'own' | 'last' | 'by';
  color: number | null;
}

/** What a line of the source shows in the editor: the selvage of its cluster, and what its kernel cost. */
export interface LineMark {
  file: string;
  line: number;
  /** `line:file:number`, as the selection names it. */
  id: string;
  /** Colour of its cluster, or of its kernel where there is one cluster alone; null where no cluster has it. */
  color: number | null;
  host: boolean;
  /** `k0`, `host`, `Python`, or several of them; empty where only a part of something that costs elsewhere. */
  name: string;
  /** `5.3 ms` at the first line of a kernel, else empty: a fused kernel has no time per line. Of several kernels the sum. */
  cost: string;
  /** All lines that the cost is of, where there are several. */
  span: readonly number[];
  /** Of the time of the whole cell, 0 to 1. */
  share: number;
  /** `k0` on the other lines of a kernel, whose cost stands at the line `head` of `headFile` ('' for this file, 0: none). */
  rest: string;
  head: number;
  headFile: string;
  /** Of kernels over several lines, in lanes from the right; null where a lane is free. */
  brackets: readonly (Bracket | null)[];
  /** Full sentences: where several things cost, each with its part. */
  label: string;
  /** Arguments whose change was the cause of a retrace, where they stand in this line. */
  changed: string[];
}

/** Pure: the marks of every line that the report speaks of, by file and line. */
export function lineMarks(report: Report): LineMark[] {
  const flow = flowOf(report);
  const whole = flow.seconds ?? report.verdict.seconds ?? 0; // a share is of what the parts take together
  const marks = new Marks();
  const titles = kernelTitles(flow);
  const gone = new Set(report.plans.filter(({ givenUp }) => givenUp).map(({ name }) => name));
  for (const node of flow.parts.flatMap(({ nodes }) => nodes)) {
    if (gone.has(node.ops[0]?.plan ?? '')) {
      markGone(marks, node); // the time of its lines is Python's
    } else if (node.cluster) {
      markCluster(marks, node, titles);
    } else {
      markHost(marks, node);
    }
  }
  for (const { lines, seconds } of flow.statements) {
    const first = firstOf(lines);
    for (const position of lines) {
      marks.at(position).host = true;
      marks.say(position, lines, 'Python', position === first ? seconds : null, 'Python ran this statement');
    }
  }
  for (const { argument, lines, first } of report.retraces) {
    if (!first && argument) {
      for (const position of lines) {
        const { changed } = marks.at(position);
        if (!changed.includes(argument)) {
          changed.push(argument);
        }
      }
    }
  }
  return marks.all(whole);
}

/** The cell in which a file's lines stand; null where it is no cell of the notebook. */
export function cellOfFile(report: Report, file: string): string | null {
  const source = report.sources.find(candidate => candidate.file === file);
  return source?.cell ?? (file === '' || fileName(file) === report.cell.title ? report.cell.id : null);
}

/** A cell's source as it was compiled; null where the report does not have it. */
export function compiledSource(report: Report, cell: string): string[] | null {
  if (cell === report.cell.id) {
    return report.cell.source;
  }
  const source = report.sources.find(candidate => candidate.cell === cell);
  return source && source.first === 1 ? source.lines : null;
}

/** What a kernel is called where its line stands: clusters number theirs each from k0, so where several do, also whose it is. */
function kernelTitles({ parts }: Flow): ReadonlyMap<FlowKernel, string> {
  const all = parts.flatMap(({ title, nodes }) =>
    nodes.flatMap(node => node.kernels.map(part => ({ title, box: node.name, part, name: part.kernel.name })))
  );
  const count = new Map<string, number>();
  for (const key of all.flatMap(({ box, name }) => [name, `${box} ${name}`])) {
    count.set(key, (count.get(key) ?? 0) + 1);
  }
  return new Map(
    all.map(({ title, box, part, name }) => {
      const whose = (count.get(`${box} ${name}`) ?? 0) > 1 ? title : box;
      return [part, (count.get(name) ?? 0) > 1 ? `${whose} ${name}` : name];
    })
  );
}

function markCluster(marks: Marks, node: FlowNode, titles: ReadonlyMap<FlowKernel, string>): void {
  const own = node.cluster?.color ?? null;
  const colors = new Map(node.kernels.map(({ kernel, color }) => [kernel.name, color]));
  for (const op of node.ops) {
    const color = colors.get(op.kernel ?? '') ?? own;
    for (const position of op.lines) {
      const mark = marks.at(position);
      mark.color ??= color;
      mark.label ||= `In ${node.name}.`;
    }
  }
  for (const part of node.kernels) {
    const { kernel } = part;
    const positions = part.ops.flatMap(op => op.lines);
    const first = firstOf(positions);
    const own = positions.filter(({ file }) => file === first?.file).map(({ line }) => line);
    const span = [...new Set(own)].sort((a, b) => a - b);
    for (const position of positions) {
      const starts = first !== undefined && same(position, first);
      const text = `Kernel ${kernel.name} of ${node.name}${span.length > 1 ? `, one loop over ${lineText(span)}` : ''}`;
      marks.say(position, part, titles.get(part) ?? kernel.name, starts ? kernel.seconds : null, text, {
        span,
        first: kernel.seconds === null ? undefined : first
      });
    }
    marks.hold(positions, part.color);
  }
}

function markGone(marks: Marks, { cluster, name, ops }: FlowNode): void {
  for (const position of cluster ? ops.flatMap(op => op.lines) : []) {
    const mark = marks.at(position);
    mark.color ??= HOLLOW;
    mark.label ||= `In ${name}, which was given up.`;
  }
}

function markHost(marks: Marks, node: FlowNode): void {
  const first = firstOf(node.ops.flatMap(op => op.lines));
  for (const op of node.ops) {
    for (const position of op.lines) {
      marks.at(position).host = true;
      const seconds = first && same(position, first) ? node.seconds : null;
      marks.say(position, node, 'host', seconds, `${op.written} runs in NumPy`);
    }
  }
}

/** The line at which a thing begins: the topmost one in the file of its first operation. */
function firstOf(positions: readonly Position[]): Position | undefined {
  const file = positions[0]?.file;
  return positions
    .filter(position => position.file === file)
    .reduce<Position | undefined>(
      (first, position) => (first === undefined || position.line < first.line ? position : first),
      undefined
    );
}

function same(a: Position, b: Position): boolean {
  return a.line === b.line && a.file === b.file;
}

/** What stands in a line: a kernel, an operation of the host, a statement; its time where it begins there. */
interface Said {
  what: object;
  name: string;
  seconds: number | null;
  text: string;
  /** Of a kernel: its lines in the file where it begins, and where that is. */
  group: Group;
}

interface Group {
  span: readonly number[];
  first: Position | undefined;
}

const ALONE: Group = { span: [], first: undefined };

/** So many things are named, more are counted. */
const MOST_NAMES = 2;
/** So many kernels have a bracket beside one line. */
const MOST_LANES = 3;

/** One mark a line, made when it is first spoken of. */
class Marks {
  at({ file, line }: Position): LineMark {
    const id = lineId(file, line);
    let mark = this.byId.get(id);
    if (!mark) {
      mark = {
        ...{ file, line, id, color: null, host: false, name: '', cost: '', share: 0, rest: '', label: '' },
        ...{ span: [], head: 0, headFile: '', brackets: [], changed: [] }
      };
      this.byId.set(id, mark);
    }
    return mark;
  }

  /** Once a line and thing: a line of one kernel is met with each of its operations. */
  say(position: Position, what: object, name: string, seconds: number | null, text: string, group = ALONE): void {
    const mark = this.at(position);
    const told = this.told.get(mark) ?? [];
    this.told.set(mark, told);
    const known = told.find(other => other.what === what);
    if (!known) {
      told.push({ what, name, seconds, text, group });
    } else {
      known.seconds ??= seconds;
    }
  }

  /** A kernel over several lines of a file has a bracket beside them, in a lane that no other takes there. */
  hold(positions: readonly Position[], color: number | null): void {
    for (const file of new Set(positions.map(position => position.file))) {
      const own = new Set(positions.filter(position => position.file === file).map(({ line }) => line));
      const [from, to] = [Math.min(...own), Math.max(...own)];
      if (from > 0 && to > from) {
        this.held.push({ file, from, to, own, color });
      }
    }
  }

  private bracket(): void {
    const ends = new Map<string, number[]>(); // of each file, the last line that its lanes are taken to
    for (const { file, from, to, own, color } of this.held.sort((a, b) => a.from - b.from || b.to - a.to)) {
      const taken = ends.get(file) ?? [];
      const free = taken.findIndex(end => end < from);
      const lane = free < 0 ? taken.length : free;
      if (lane >= MOST_LANES) {
        continue;
      }
      taken[lane] = to;
      ends.set(file, taken);
      for (let line = from; line <= to; line++) {
        const mark = this.at({ file, line });
        const edge = line === from ? 'first' : line === to ? 'last' : own.has(line) ? 'own' : 'by';
        mark.brackets = Array.from({ length: Math.max(lane + 1, mark.brackets.length) }, (_, at) =>
          at === lane ? { edge, color } : (mark.brackets[at] ?? null)
        );
      }
    }
  }

  /** `whole`: the seconds of the cell, of which a line has its share. */
  all(whole: number): LineMark[] {
    this.bracket();
    for (const [mark, told] of this.told) {
      finish(mark, told, whole);
    }
    return [...this.byId.values()].filter(({ line }) => line > 0).sort((a, b) => a.line - b.line);
  }

  private readonly byId = new Map<string, LineMark>();
  private readonly told = new Map<LineMark, Said[]>();
  private readonly held: { file: string; from: number; to: number; own: ReadonlySet<number>; color: number | null }[] =
    [];
}

function finish(mark: LineMark, told: readonly Said[], whole: number): void {
  const timed = told.filter(({ seconds }) => seconds !== null);
  const seconds = timed.reduce((sum, one) => sum + (one.seconds ?? 0), 0);
  const sentences = told.map(one => `${one.text}${one.seconds === null ? '' : `, ${duration(one.seconds)}`}.`);
  mark.label = (timed.length > 1 ? [`${duration(seconds)} together.`, ...sentences] : sentences).join(' ');
  if (timed.length > 0) {
    const span = [...new Set(timed.flatMap(({ group }) => group.span))].sort((a, b) => a - b);
    Object.assign(mark, { name: namesOf(timed), cost: duration(seconds), span: span.length > 1 ? span : [] });
    mark.share = whole > 0 ? Math.min(1, seconds / whole) : 0;
  } else {
    const kernels = told.filter(({ name }) => name !== 'host' && name !== 'Python');
    const heads = kernels.map(({ group }) => group.first);
    const [first] = heads;
    const one = heads.every(head => head && first && same(head, first)) ? first : undefined;
    mark.rest = kernels.length ? namesOf(kernels) : '';
    mark.head = one && !same(one, mark) ? one.line : 0;
    mark.headFile = one && one.file !== mark.file ? fileName(one.file) : '';
  }
}

/** `lines 4–9`, `5 lines` where others lie between: what a cost is of, where it is not that of its line alone. */
export function spanText({ span }: LineMark): string {
  const said = lineText(span);
  return said.includes(' and ') ? some(span.length, 'line') : said;
}

/** `k0 with line 4`: where the cost of a line is shown that has none of its own. */
export function restText({ rest, head, headFile }: LineMark): string {
  if (rest === '' || head === 0) {
    return rest && `in ${rest}`;
  }
  return `${rest} with ${headFile && `${headFile}, `}line ${head}`;
}

/** `k0`, `k0 + k1`, `cluster_4 k0 + k1`, `3 kernels`, `4 parts` */
function namesOf(told: readonly Said[]): string {
  const names = [...new Set(told.map(({ name }) => name))];
  const whose = new Set(names.map(name => name.slice(0, name.lastIndexOf(' ') + 1)));
  const [first = '', second = ''] = names;
  const [one = '', other = ''] = whose;
  if (names.length > MOST_NAMES || (one && other)) {
    return `${names.length} ${names.some(name => name === 'host' || name === 'Python') ? 'parts' : 'kernels'}`;
  }
  return names.length < 2 ? first : `${first} + ${whose.size < 2 ? second.slice(one.length) : second}`; // a cluster is said once
}
