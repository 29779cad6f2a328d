import { h, placeItems, set } from '../../../base/dom';
import type { Rect, Scene } from './scene';
import type { TreeNode } from '../tree';

/** Elements for the keyboard and for readers: those around the one in focus. */
const AROUND = 24;

/** What is said of a box, and whether it is pinned. */
interface Told {
  label(box: TreeNode): string;
  pinned(box: TreeNode): boolean;
}

/** A window of tree items around the one in focus, each over its box; the canvas itself says nothing to a reader. */
export class MapItems {
  readonly element = h('div.jl-layer', { role: 'tree', 'aria-label': 'Graph, boxes in program order' });

  constructor(private readonly told: Told) {}

  /** Whether the keyboard is at one of them. */
  get isFocused(): boolean {
    return this.element.contains(document.activeElement);
  }

  /** Of `order` those around `focused`, at their places on a screen of this size. `again`: only the viewport has moved. */
  show(
    scene: Scene,
    order: readonly TreeNode[],
    focused: number,
    screen: { width: number; height: number; scale: number; at(rect: Rect): { x: number; y: number } },
    again: boolean
  ): void {
    placeItems(this.element, order.slice(Math.max(0, focused - AROUND), focused + AROUND), (element, box) => {
      const place = box === order[focused] ? 0 : -1;
      if (element.tabIndex !== place) {
        element.tabIndex = place;
      }
      if (!again || element.dataset.key !== box.key) {
        this.name(element, box, scene);
      }
      const rect = scene.rectOf(box);
      const { x, y } = rect ? screen.at(rect) : { x: 0, y: 0 };
      const tall = scene.isOpen(box) ? 26 : (rect?.height ?? 0);
      // Of a box that is out of sight nothing may be seen, and no element lies far beyond the edge.
      const [left, right] = [x, x + (rect?.width ?? 0) * screen.scale].map(at => near(at, screen.width)) as [
        number,
        number
      ];
      const [top, bottom] = [y, y + tall * screen.scale].map(at => near(at, screen.height)) as [number, number];
      return { left, top, width: Math.max(8, right - left), height: Math.max(8, bottom - top) };
    });
  }

  focus(key: string): void {
    for (const element of this.element.children as HTMLCollectionOf<HTMLElement>) {
      if (element.dataset.key === key) {
        element.focus({ preventScroll: true });
      }
    }
  }

  private name(element: HTMLElement, box: TreeNode, scene: Scene): void {
    const siblings = scene.childrenOf(scene.groupOf(box));
    set(element, {
      ...{ 'data-key': box.key, 'data-id': box.id, 'data-kind': box.kind },
      'aria-label': this.told.label(box),
      'aria-level': Math.max(1, box.level),
      'aria-setsize': siblings.length,
      'aria-posinset': siblings.indexOf(box) + 1,
      'aria-selected': this.told.pinned(box),
      'aria-expanded': box.group ? scene.isOpen(box) : null
    });
  }
}

/** On the screen, or a little beside it. */
function near(at: number, size: number): number {
  return Math.max(-20, Math.min(size + 20, at));
}
