import type { Selection } from '../../../panel/selection';
import type { SceneSource } from './scene';
import type { TreeEdge, TreeNode } from '../tree';

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
