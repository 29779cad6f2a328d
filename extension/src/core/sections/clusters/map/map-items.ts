import { h } from '../../../base/dom';
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
    const { children } = this.element;
    const shown = order.slice(Math.max(0, focused - AROUND), focused + AROUND);
    while (children.length > shown.length) {
      this.element.lastElementChild?.remove();
    }
    shown.forEach((box, index) => {
      let element = children[index] as HTMLElement | undefined;
      if (!element) {
        element = h('div.jl-item', { role: 'treeitem', tabindex: '-1' });
        this.element.append(element);
      }
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
      Object.assign(element.style, {
        left: `${Math.max(-20, Math.min(screen.width, x))}px`,
        top: `${Math.max(-20, Math.min(screen.height, y))}px`,
        width: `${Math.max(8, (rect?.width ?? 0) * screen.scale)}px`,
        height: `${Math.max(8, tall * screen.scale)}px`
      });
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
    element.dataset.key = box.key;
    element.dataset.id = box.id;
    element.dataset.kind = box.kind;
    const siblings = scene.childrenOf(scene.groupOf(box));
    element.setAttribute('aria-label', this.told.label(box));
    element.setAttribute('aria-level', String(Math.max(1, box.level)));
    element.setAttribute('aria-setsize', String(siblings.length));
    element.setAttribute('aria-posinset', String(siblings.indexOf(box) + 1));
    element.setAttribute('aria-selected', String(this.told.pinned(box)));
    if (box.group) {
      element.setAttribute('aria-expanded', String(scene.isOpen(box)));
    } else {
      element.removeAttribute('aria-expanded');
    }
  }
}
