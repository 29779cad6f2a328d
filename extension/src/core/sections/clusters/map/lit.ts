import type { Selection } from '../../../panel/selection';
import type { SceneSource } from './scene';
import type { GraphTree, TreeEdge, TreeNode } from '../tree';

/** The id by which all views know what a box stands for; null for what only the picture has. */
export function idOfBox({ links }: Selection, box: TreeNode): string | null {
  const plan = box.op?.plan ?? box.kernel?.kernel.plan ?? box.flow?.cluster?.plan ?? '';
  return box.id ? (links?.idOf(box.id, plan) ?? box.id) : null;
}

/** Whether a box is what is pointed at or pinned. */
export function isLit(selection: Selection, box: TreeNode): boolean {
  const { lit } = selection;
  const id = lit && idOfBox(selection, box);
  if (!lit || !id) {
    return false;
  }
  return box.kind === 'cluster'
    ? lit.kind === 'cluster' && lit.clusters.has(id)
    : box.kind === 'kernel'
      ? lit.kind === 'kernel' && lit.kernels.has(id)
      : lit.kind !== 'cluster' && lit.kind !== 'kernel' && lit.ops.has(id); // what is inside has its box's own mark
}

/** The innermost boxes of what is pointed at, and all that hold them: the way from a line to its operations. */
export interface Found {
  boxes: readonly TreeNode[];
  around: ReadonlySet<TreeNode>;
}

const NONE: Found = { boxes: [], around: new Set() };
/** Of more there is no way to one of them. */
const MOST = 200;

export function foundIn({ lit, links }: Selection, tree: GraphTree): Found {
  if (!lit || !links || lit.kind === 'none' || lit.kind === 'cluster') {
    return NONE;
  }
  const named = lit.kind === 'kernel' ? [tree.named(links.kernel(lit.id)?.name ?? lit.id)] : [];
  const ops = lit.kind === 'kernel' ? [] : [...lit.ops].slice(0, MOST).map(id => links.op(id));
  const boxes = [...named, ...ops.map(op => op && tree.find(op))].filter(box => box !== undefined);
  const around = new Set<TreeNode>();
  for (const box of boxes) {
    for (let outer = box.parent; outer; outer = outer.parent) {
      around.add(outer);
    }
  }
  return { boxes, around };
}

/** Whether an edge between the boxes of a group is part of what is pointed at or pinned. */
export function isEdgeLit(
  { lit, links }: Selection,
  source: SceneSource,
  { from, to, boundary }: TreeEdge,
  group: TreeNode | null
): boolean {
  if (!lit || !links || lit.edges.size === 0 || lit.kind === 'cluster' || lit.kind === 'kernel') {
    return false;
  }
  const boxes = group ? source.childrenOf(group) : source.roots;
  const [producer, consumer] = [boxes[from]?.op, boxes[to]?.op];
  const edge =
    boundary ?? (producer && consumer && { producer: producer.name, consumer: consumer.name, plan: producer.plan });
  return edge ? lit.edges.has(links.edgeId(edge)) : false;
}
