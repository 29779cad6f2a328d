import type { Measure } from '../../../base/shapes';
import { closedWidth } from './labels';
import type { Layered } from './layered';
import type { GroupJob } from './layouter';
import { isSide, type TreeEdge, type TreeNode } from '../tree';

/** What a scene shows: the tree of a report, or the neighbours of one operation. */
export interface SceneSource {
  roots: readonly TreeNode[];
  childrenOf(node: TreeNode): readonly TreeNode[];
  edgesOf(group: TreeNode | null): readonly TreeEdge[];
}

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export const HEAD = 26;
export const PAD = 12;
/** The key of the whole graph among the groups. */
const WHOLE = '';
const ASPECT = 1.2;

/** Which boxes are open and where all of them lie. Nothing is drawn or laid out here: `jobs` says what a layouter has to do. */
export class Scene {
  readonly open = new Set<string>();

  constructor(
    readonly source: SceneSource,
    private readonly measure: Measure
  ) {}

  get width(): number {
    return this.layouts.get(WHOLE)?.width ?? 0;
  }

  get height(): number {
    return this.layouts.get(WHOLE)?.height ?? 0;
  }

  get ready(): boolean {
    return this.layouts.has(WHOLE);
  }

  /** Whether it is shown open; what was opened a moment ago is so when its layout has come. */
  isOpen(node: TreeNode): boolean {
    return this.applied.has(node.key);
  }

  toggle(node: TreeNode): void {
    if (!node.group) {
      return;
    }
    if (!this.open.delete(node.key)) {
      this.open.add(node.key);
      for (const side of this.source.childrenOf(node).filter(isSide)) {
        this.open.add(side.key); // who opens a branch sees both of its sides
        this.stale.add(side.key);
      }
    }
    this.touch(node);
  }

  /** Opens all that is around a box. */
  reveal(node: TreeNode): void {
    for (let box = node.parent; box; box = box.parent) {
      if (box.level > 0 && !this.open.has(box.key)) {
        this.open.add(box.key);
        this.touch(box);
      }
    }
  }

  /** What has to be laid out, groups within others first; taken with `take`. */
  jobs(): { groups: (TreeNode | null)[]; jobs: GroupJob[] } {
    const groups: (TreeNode | null)[] = [];
    const jobs: GroupJob[] = [];
    const place = new Map<string, number>();
    const visit = (group: TreeNode | null): void => {
      const key = group?.key ?? WHOLE;
      const boxes = this.childrenOf(group);
      for (const box of boxes) {
        if (this.open.has(box.key)) {
          visit(box);
        }
      }
      if (this.layouts.has(key) && !this.stale.has(key)) {
        return;
      }
      const edges = this.source.edgesOf(group);
      place.set(key, jobs.length);
      groups.push(group);
      jobs.push({
        graph: {
          widths: Float64Array.from(boxes, box => this.sizeOf(box, this.open)[0]),
          heights: Float64Array.from(boxes, box => this.sizeOf(box, this.open)[1]),
          from: Int32Array.from(edges, edge => edge.from),
          to: Int32Array.from(edges, edge => edge.to),
          aspect: ASPECT
        },
        inner: Int32Array.from(boxes, box => place.get(box.key) ?? -1),
        frame: { width: 2 * PAD, height: HEAD + PAD }
      });
    };
    visit(null);
    return { groups, jobs };
  }

  take(groups: readonly (TreeNode | null)[], made: readonly Layered[]): void {
    groups.forEach((group, index) => {
      const layout = made[index];
      if (layout) {
        this.layouts.set(group?.key ?? WHOLE, layout);
        this.stale.delete(group?.key ?? WHOLE);
      }
    });
    this.applied = new Set(this.open);
  }

  childrenOf(group: TreeNode | null): readonly TreeNode[] {
    return group ? this.source.childrenOf(group) : this.source.roots;
  }

  layoutOf(group: TreeNode | null): Layered | undefined {
    return this.layouts.get(group?.key ?? WHOLE);
  }

  sizeOf(node: TreeNode, open: ReadonlySet<string> = this.applied): readonly [number, number] {
    const closed = this.closedSize(node);
    const layout = open.has(node.key) ? this.layouts.get(node.key) : undefined;
    return layout ? [Math.max(closed[0], layout.width + 2 * PAD), layout.height + HEAD + PAD] : closed;
  }

  /** Where a box lies in the scene; null when it is inside one that is closed. */
  rectOf(node: TreeNode): Rect | null {
    const group = this.groupOf(node);
    const layout = this.layoutOf(group);
    const index = this.childrenOf(group).indexOf(node);
    const origin = this.originOf(group);
    if (!layout || index < 0 || !origin) {
      return null;
    }
    const [width, height] = this.sizeOf(node);
    return { x: origin.x + (layout.x[index] ?? 0), y: origin.y + (layout.y[index] ?? 0), width, height };
  }

  /** Where a box lies, or the innermost that is shown around it. */
  shownRectOf(node: TreeNode): Rect | null {
    for (let box: TreeNode | null = node; box; box = this.groupOf(box)) {
      const rect = this.rectOf(box);
      if (rect) {
        return rect;
      }
    }
    return null;
  }

  /** Where the boxes within a group begin. */
  originOf(group: TreeNode | null): { x: number; y: number } | null {
    if (!group) {
      return { x: 0, y: 0 };
    }
    const rect = this.isOpen(group) ? this.rectOf(group) : null;
    const layout = this.layoutOf(group);
    return !rect || !layout ? null : { x: rect.x + (rect.width - layout.width) / 2, y: rect.y + HEAD };
  }

  /** The innermost box at a point. */
  at(x: number, y: number): TreeNode | null {
    let found: TreeNode | null = null;
    let origin = { x: 0, y: 0 };
    for (;;) {
      const group: TreeNode | null = found;
      const layout = this.layoutOf(group);
      const boxes = this.childrenOf(group);
      const index = boxes.findIndex((box, at) => {
        const [width, height] = this.sizeOf(box);
        const [dx, dy] = [x - origin.x - (layout?.x[at] ?? 0), y - origin.y - (layout?.y[at] ?? 0)];
        return dx >= 0 && dy >= 0 && dx <= width && dy <= height;
      });
      const box = boxes[index];
      if (!box || !layout) {
        return found;
      }
      const [width] = this.sizeOf(box);
      const inner = this.isOpen(box) ? this.layoutOf(box) : undefined;
      found = box;
      if (!inner) {
        return found;
      }
      origin = {
        x: origin.x + (layout.x[index] ?? 0) + (width - inner.width) / 2,
        y: origin.y + (layout.y[index] ?? 0) + HEAD
      };
    }
  }

  /** The box that holds it in this scene. */
  groupOf(node: TreeNode): TreeNode | null {
    const parent = node.parent;
    return parent && parent.level > 0 && !this.source.roots.includes(node) ? parent : null;
  }

  /** All boxes that are shown, in the order of a tree. */
  *shown(group: TreeNode | null = null): Generator<TreeNode> {
    for (const box of this.childrenOf(group)) {
      yield box;
      if (this.isOpen(box)) {
        yield* this.shown(box);
      }
    }
  }

  /** The box at the other end of an edge: of one that leaves (`forward`), or one that enters. */
  along(box: TreeNode, forward: boolean): TreeNode | undefined {
    const group = this.groupOf(box);
    const boxes = this.childrenOf(group);
    const at = boxes.indexOf(box);
    const edge = this.source.edgesOf(group).find(({ from, to }) => (forward ? from : to) === at);
    return edge && boxes[forward ? edge.to : edge.from];
  }

  /** Of what is shown, the next box after a place that reads a value which was not fused. */
  nextApart(shown: readonly TreeNode[], place: number): TreeNode | undefined {
    const readers = new Set<TreeNode>();
    for (const group of [null, ...shown.filter(box => this.isOpen(box))]) {
      const boxes = this.childrenOf(group);
      for (const { to, boundary } of this.source.edgesOf(group)) {
        const reader = boxes[to];
        if (boundary && reader) {
          readers.add(reader);
        }
      }
    }
    return [...shown.slice(place + 1), ...shown.slice(0, place + 1)].find(box => readers.has(box));
  }

  private closedSize(node: TreeNode): readonly [number, number] {
    let size = this.sizes.get(node);
    if (!size) {
      const height = { cluster: 44, host: 44, plan: 44, kernel: 40, part: 40, loop: 24, op: 20 }[node.kind];
      size = [closedWidth(node, this.measure), height];
      this.sizes.set(node, size);
    }
    return size;
  }

  private touch(node: TreeNode): void {
    // Of a box that was closed nothing inside has changed.
    for (let box = this.open.has(node.key) ? node : this.groupOf(node); box; box = this.groupOf(box)) {
      this.stale.add(box.key);
    }
    this.stale.add(WHOLE);
  }

  private applied: ReadonlySet<string> = new Set();
  private readonly sizes = new WeakMap<TreeNode, readonly [number, number]>();
  private readonly layouts = new Map<string, Layered>();
  private readonly stale = new Set<string>();
}
