import { h, set, takeKey, type Child } from '../../base/dom';
import { arrayType, bytes, duration, joined, lineRanges, lines, sentence } from '../../base/format';
import { swatch } from '../../base/marks';
import type { Statement } from '../../report/report';
import { VirtualRows } from '../../base/virtual';
import { factsOf } from './map/labels';
import type { GraphTree, TreeNode } from './tree';
import {
  clusterFacts,
  describe,
  distinctTexts,
  firstLine,
  hostFacts,
  kernelFacts,
  kernelLabel,
  launchText,
  nodeLabel,
  said,
  wrongText
} from './words';

interface Row {
  level: number;
  box: TreeNode | null;
  statement: Statement | null;
}

const ROW = 38;

/** The same boxes as rows that open and close: every cluster, kernel and operation, with what keeps them apart. */
export class ClustersTable {
  readonly element: HTMLElement;

  constructor(
    private readonly host: {
      hover(box: TreeNode | null): void;
      pin(box: TreeNode): void;
      load(box: TreeNode): Promise<void> | null;
    }
  ) {
    this.list = new VirtualRows({
      label: 'Clusters',
      role: 'treegrid',
      rowHeight: ROW,
      columns: ['name', 'lines', 'ops', 'bytes', 'time'],
      fill: (row, index) => this.fill(row, index),
      key: (event, index) => this.onKey(event, index),
      click: (index, event) => {
        const box = this.rows[index]?.box;
        const onArrow = event.target instanceof Element && event.target.closest('.jl-twist') !== null;
        if (box?.group && (onArrow || event.detail === 2)) {
          void this.toggle(box, index);
        } else if (box && event.detail <= 1) {
          this.host.pin(box);
        }
      },
      point: index => this.host.hover(this.rows[index]?.box ?? null)
    });
    this.element = this.list.element;
  }

  show(tree: GraphTree, open: ReadonlySet<string> = this.open): void {
    if (tree !== this.tree) {
      this.tree = tree;
      this.open = new Set([...open]);
    }
    this.rows = [];
    const visit = (box: TreeNode, level: number): void => {
      this.rows.push({ level, box, statement: null });
      if (this.open.has(box.key)) {
        for (const inside of tree.childrenOf(box)) {
          visit(inside, level + 1);
        }
      }
    };
    tree.roots.forEach(root => visit(root, 1));
    tree.flow.statements.forEach(statement => this.rows.push({ level: 1, box: null, statement }));
    this.list.count = this.rows.length;
  }

  /** Opens what is around a box and goes to its row. */
  locate(box: TreeNode): void {
    for (let outer = box.parent; outer; outer = outer.parent) {
      this.open.add(outer.key);
    }
    if (this.tree) {
      this.show(this.tree);
    }
    this.list.goTo(this.rows.findIndex(row => row.box === box));
  }

  private async toggle(box: TreeNode, index: number): Promise<void> {
    if (!this.open.delete(box.key)) {
      await this.host.load(box);
      this.open.add(box.key);
    }
    if (this.tree) {
      this.show(this.tree);
    }
    this.list.goTo(index);
  }

  private onKey(event: KeyboardEvent, index: number): boolean {
    const row = this.rows[index];
    const box = row?.box;
    if (!row || !box) {
      return false;
    }
    const isOpen = this.open.has(box.key);
    const pin = (): void => this.host.pin(box);
    const toggle = (): Promise<void> => this.toggle(box, index);
    const outer = (): number => this.rows.findLastIndex((other, at) => at < index && other.level < row.level);
    return takeKey(event, {
      Enter: box.group ? toggle : pin,
      ArrowRight: box.group && !isOpen ? toggle : () => this.list.goTo(index + 1),
      ArrowLeft: isOpen ? toggle : () => this.list.goTo(outer()),
      ' ': pin
    });
  }

  private fill(element: HTMLElement, index: number): void {
    const row = this.rows[index];
    if (!row) {
      return;
    }
    element.setAttribute('aria-level', String(row.level));
    const { box, statement } = row;
    const indent = h('span.jl-indent');
    indent.style.width = `${(row.level - 1) * 12}px`;
    const put = (
      what: Child,
      lines: readonly number[],
      count: string,
      size: string,
      time: string,
      about: string
    ): void => {
      const number = (text: string): HTMLElement => h('span.jl-number', { role: 'gridcell' }, text);
      element.append(
        h('span.jl-what', { role: 'gridcell' }, indent, what),
        h('span', { role: 'gridcell' }, lineRanges(lines)),
        ...[count, size, time].map(number),
        h('span.jl-about', { role: 'gridcell', title: about }, about)
      );
    };
    if (statement) {
      const why = sentence(`Run by Python: ${statement.reason.text || 'it is no array work'}`);
      const lines = statement.lines.map(({ line }) => line);
      const what = [swatch('statement'), h('code', firstLine(statement.text))];
      put(what, lines, '', '', duration(statement.seconds), why);
    } else if (box) {
      const isOpen = this.open.has(box.key);
      set(element, { 'aria-expanded': box.group ? isOpen : null });
      const twist = h('span.jl-twist', { 'aria-hidden': 'true' }, box.group ? (isOpen ? '▾' : '▸') : '');
      const mark = box.kind !== 'part' && box.kind !== 'plan' && swatch(box.color ?? 'host');
      const [count, size] = [box.kind === 'op' ? '' : String(box.count), box.bytes ? bytes(box.bytes) : ''];
      const time = box.seconds === null ? '' : duration(box.seconds);
      put([twist, mark, h('b', box.name)], box.lines, count, size, time, aboutOf(box));
    }
  }

  private readonly list: VirtualRows;
  private tree: GraphTree | null = null;
  private rows: Row[] = [];
  private open = new Set<string>();
}

/** What a reader hears of a box. */
export function labelOf(box: TreeNode): string {
  if (box.kind === 'kernel' && box.kernel) {
    return kernelLabel(box.kernel);
  }
  if (box.op) {
    return describe(box.op);
  }
  return box.flow ? nodeLabel(box.flow) : `${box.name}, ${lines(box.lines)}.`;
}

/** The second line of a row: what it is, and what keeps it apart. */
export function aboutOf(box: TreeNode): string {
  const apart = (boundaries: Parameters<typeof distinctTexts>[0], kind: 'kernels' | 'boxes'): string[] =>
    distinctTexts(boundaries, kind).flatMap(([{ head, why, flip }]) => [head, why, flip]);
  switch (box.kind) {
    case 'op':
    case 'loop':
      return box.op
        ? joined(
            ' · ',
            arrayType(box.op.dtype, box.op.shape),
            said(box.op),
            box.reason && `Runs in NumPy: ${box.reason.text}`
          )
        : '';
    case 'kernel':
      return box.kernel
        ? joined(
            ' · ',
            ...kernelFacts(box.kernel, true),
            launchText(box.kernel.kernel),
            ...apart(box.kernel.boundaries, 'kernels')
          )
        : '';
    case 'host':
      return box.flow ? joined(' ', ...hostFacts(box.flow), ...apart(box.flow.boundaries, 'boxes')) : '';
    case 'cluster':
      return joined(
        ' · ',
        box.flow?.cluster ? clusterFacts(box.flow) : factsOf(box).join(' · '),
        box.flow && wrongText(box.flow),
        box.reason?.text,
        ...apart(box.flow?.boundaries ?? [], 'boxes')
      );
    case 'part':
    case 'plan':
      return lines(box.lines);
  }
}
