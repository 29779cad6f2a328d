import { flowOf, type FlowKernel, type FlowNode } from './clusters/flow';
import { duration, fileName } from './format';
import { lineId } from './links';
import type { Position, Report } from './report';

/** What a line of the source shows in the editor: the selvage of its cluster, and what its kernel cost. */
export interface LineMark {
  file: string;
  line: number;
  /** `line:file:number`, as the selection names it. */
  id: string;
  /** Colour of its cluster; null where no cluster has it. */
  color: number | null;
  host: boolean;
  /** `k0`, `host`, `Python`; empty where only a part of something that costs elsewhere. */
  name: string;
  /** `5.3 ms` at the first line of a kernel, else empty: a fused kernel has no time per line. */
  cost: string;
  /** Of the time of the whole cell, 0 to 1. */
  share: number;
  /** `in k0` on the other lines of a kernel. */
  rest: string;
  /** A full sentence. */
  label: string;
  /** Arguments whose change was the cause of a retrace, where they stand in this line. */
  changed: string[];
}

/** Pure: the marks of every line that the report speaks of, by file and line. */
export function lineMarks(report: Report): LineMark[] {
  const flow = flowOf(report);
  const whole = flow.seconds ?? report.verdict.seconds ?? 0;
  const marks = new Marks();
  for (const node of flow.parts.flatMap(({ nodes }) => nodes)) {
    if (node.cluster) {
      markCluster(marks, node, whole);
    } else {
      markHost(marks, node, whole);
    }
  }
  for (const { lines, seconds } of flow.statements) {
    const first = firstOf(lines);
    for (const position of lines) {
      const mark = marks.at(position);
      mark.host = true;
      if (position === first && seconds !== null) {
        addCost(mark, 'Python', seconds, whole);
      }
      mark.label ||= 'Python ran this statement.';
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
  return marks.all();
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

function markCluster(marks: Marks, node: FlowNode, whole: number): void {
  const color = node.cluster?.color ?? null;
  for (const op of node.ops) {
    for (const position of op.lines) {
      const mark = marks.at(position);
      mark.color ??= color;
      mark.label ||= `In ${node.name}.`;
    }
  }
  for (const part of node.kernels) {
    const positions = part.ops.flatMap(op => op.lines);
    // Where another kernel begins on the same line, the next line has the room for this one's cost.
    const first = firstOf(positions.filter(position => !marks.at(position).cost)) ?? firstOf(positions);
    for (const position of positions) {
      const mark = marks.at(position);
      if (first && same(position, first) && part.kernel.seconds !== null) {
        addCost(mark, part.kernel.name, part.kernel.seconds, whole);
      } else if (!mark.cost && !mark.rest) {
        mark.rest = `in ${part.kernel.name}`;
      }
      mark.label = sentenceOf(part, node);
    }
  }
}

function markHost(marks: Marks, node: FlowNode, whole: number): void {
  const first = firstOf(node.ops.flatMap(op => op.lines));
  for (const op of node.ops) {
    for (const position of op.lines) {
      const mark = marks.at(position);
      mark.host = true;
      if (first && same(position, first) && node.seconds !== null) {
        addCost(mark, 'host', node.seconds, whole);
      }
      mark.label ||= `${op.op} runs on the host.`;
    }
  }
}

function addCost(mark: LineMark, name: string, seconds: number, whole: number): void {
  const share = whole > 0 ? Math.min(1, seconds / whole) : 0;
  if (mark.cost && mark.name === name) {
    return; // the line of one node is met once an operation
  }
  if (!mark.cost || share > mark.share) {
    Object.assign(mark, { name, cost: duration(seconds), share, rest: '' });
  }
}

function sentenceOf({ kernel }: FlowKernel, node: FlowNode): string {
  const time = kernel.seconds === null ? '' : `, ${duration(kernel.seconds)}`;
  return `Kernel ${kernel.name} of ${node.name}${time}.`;
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

/** One mark a line, made when it is first spoken of. */
class Marks {
  at({ file, line }: Position): LineMark {
    const id = lineId(file, line);
    let mark = this.byId.get(id);
    if (!mark) {
      mark = {
        ...{ file, line, id, color: null, host: false, name: '', cost: '', share: 0, rest: '', label: '' },
        changed: []
      };
      this.byId.set(id, mark);
    }
    return mark;
  }

  all(): LineMark[] {
    return [...this.byId.values()].filter(({ line }) => line > 0).sort((a, b) => a.line - b.line);
  }

  private readonly byId = new Map<string, LineMark>();
}
