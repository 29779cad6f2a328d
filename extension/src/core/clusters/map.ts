import { CanvasView } from '../canvas';
import { h, on } from '../dom';
import { Layouter } from './layouter';
import { Minimap } from './minimap';
import { Scene, type Rect, type SceneSource } from './scene';
import { drawScene, type SceneLook, type Viewport } from './scene-draw';
import type { TreeEdge, TreeNode } from './tree';

/** What the map asks of the section that it is a picture of. */
export interface MapHost {
  /** What a reader hears of a box. */
  label(box: TreeNode): string;
  heat(box: TreeNode): number | null;
  lit(box: TreeNode): boolean;
  litEdge(edge: TreeEdge, group: TreeNode | null): boolean;
  hover(box: TreeNode | null): void;
  pin(box: TreeNode): void;
  pinned(box: TreeNode): boolean;
  /** Before a box opens: resolves when all that is inside of it is here; null where it is. */
  load(box: TreeNode): Promise<void> | null;
  /** A key that the map itself has no use for. */
  key(event: KeyboardEvent, box: TreeNode | null): boolean;
}

const CLOSEST = 2;
const FARTHEST = 0.01;
/** Elements for the keyboard and for readers: those around the one in focus. */
const AROUND = 24;
const STEP = 1.25;

/** A graph of any size on a canvas that is moved and zoomed; boxes open in place. */
export class MapView {
  readonly element: HTMLElement;

  constructor(
    private readonly host: MapHost,
    private readonly layouter = new Layouter()
  ) {
    this.layer = h('div', { class: 'jl-layer', role: 'tree', 'aria-label': 'Graph, boxes in program order' });
    this.note = h('div', { class: 'jl-map-note jl-note', role: 'status', hidden: true });
    this.element = h(
      'div',
      { class: 'jl-frame jl-map' },
      this.canvas.element,
      this.layer,
      this.minimap.element,
      this.note
    );
    on(this.element, {
      pointerdown: event => {
        if (event.button === 0) {
          this.drag = { x: event.clientX, y: event.clientY, moved: false, view: { ...this.view } };
          this.from = this.pointOf(event);
        }
      },
      pointermove: event => {
        this.onMove(event);
      },
      pointerup: () => {
        this.drag = null;
      },
      pointerleave: () => {
        this.host.hover(null);
      },
      click: event => {
        this.onClick(event);
      },
      dblclick: event => {
        const box = this.boxAt(event);
        if (box) {
          void this.toggle(box);
        }
      },
      keydown: event => {
        this.onKey(event);
      },
      focusin: event => {
        const key = event.target instanceof HTMLElement ? event.target.dataset.key : undefined;
        this.focused = key ?? this.focused;
      }
    });
    this.element.addEventListener(
      'wheel',
      event => {
        if (event.ctrlKey || event.metaKey) {
          event.preventDefault();
          const { x, y } = this.pointOf(event);
          this.zoom(Math.exp(-event.deltaY * 0.01), x, y);
        }
      },
      { passive: false }
    );
  }

  /** Shows a graph; the one before it is forgotten, with what was open in it. */
  async show(source: SceneSource, open: Iterable<TreeNode> = []): Promise<void> {
    const measure = this.canvas.prepare();
    if (!measure) {
      return;
    }
    this.scene = new Scene(source, measure);
    this.listed = null;
    for (const box of open) {
      this.scene.toggle(box);
    }
    this.fitted = true;
    await this.layOut();
  }

  /** Whether it shows this graph. */
  shows(source: SceneSource | null): boolean {
    return this.scene !== null && this.scene.source === source;
  }

  /** It is as high as its graph, between these two; a graph that is wider than it shrinks first. */
  resize(width: number, most: number, least = most): void {
    this.room = { width, most, least };
    this.settle();
  }

  private settle(): void {
    const { scene } = this;
    const { width, most, least } = this.room;
    const shrunk = scene?.ready ? Math.min(1, (width - 16) / Math.max(1, scene.width)) : 1;
    const wanted = scene?.ready ? Math.ceil(scene.height * shrunk) + 24 : least;
    const height = Math.max(least, Math.min(most, wanted));
    if (width !== this.width || height !== this.height) {
      [this.width, this.height] = [width, height];
      this.element.style.height = `${height}px`;
      if (this.fitted) {
        this.fit();
      }
    }
  }

  /** Draws the frame that is due. `again`: only the viewport has moved. */
  render(again = false): void {
    const { scene } = this;
    if (!scene?.ready || !this.canvas.prepare(again)) {
      return;
    }
    const brush = this.canvas.begin(this.width, this.height);
    if (!brush) {
      return;
    }
    const look: SceneLook = {
      width: this.width,
      height: this.height,
      measure: brush.measure,
      theme: brush.theme,
      heat: box => this.host.heat(box),
      lit: box => this.host.lit(box),
      litEdge: (edge, group) => this.host.litEdge(edge, group)
    };
    drawScene(brush.context, scene, this.view, look);
    this.minimap.show(scene, this.view, this, look.heat, again);
    this.placeItems(again);
  }

  /** The whole graph, in the middle, and never larger than it is. */
  fit(): void {
    const { scene } = this;
    if (!scene) {
      return;
    }
    const scale = Math.min(1, (this.width - 16) / scene.width, (this.height - 16) / scene.height);
    const k = Math.max(FARTHEST, Number.isFinite(scale) ? scale : 1);
    this.view = {
      scale: k,
      x: scene.width / 2 - this.width / 2 / k,
      y: Math.min(scene.height / 2 - this.height / 2 / k, Math.max(-8 / k, 0))
    };
    if (scene.height * k < this.height) {
      this.view.y = scene.height / 2 - this.height / 2 / k;
    }
    this.fitted = true;
    this.schedule();
  }

  /** Opens or closes a box; its corner stays where it is on the screen. */
  async toggle(box: TreeNode, corner?: { x: number; y: number }): Promise<void> {
    const { scene } = this;
    if (!scene || !box.group) {
      return;
    }
    const waits = scene.open.has(box.key) ? null : this.host.load(box);
    if (waits) {
      this.say(`Fetching ${box.name}…`);
      await waits;
    }
    if (scene !== this.scene) {
      return;
    }
    const before = scene.rectOf(box);
    const at = corner ?? (before && this.toScreen(before));
    scene.toggle(box);
    this.focused = box.key;
    this.fitted = false;
    await this.layOut(() => {
      const rect = scene.rectOf(box);
      if (rect && at) {
        this.view.x = rect.x - at.x / this.view.scale;
        this.view.y = rect.y - at.y / this.view.scale;
      }
    });
  }

  /** Opens all boxes beside one, and it; where they are open, the next level of the whole picture. */
  async openAll(box: TreeNode | null): Promise<void> {
    const { scene } = this;
    if (!scene) {
      return;
    }
    const group = box ? scene.groupOf(box) : null;
    const closed = (boxes: readonly TreeNode[]): TreeNode[] =>
      boxes.filter(other => other.group && !scene.open.has(other.key));
    const beside = closed(scene.childrenOf(group));
    const boxes = beside.length ? beside : closed(this.order());
    for (const other of boxes) {
      await this.host.load(other);
    }
    if (scene === this.scene) {
      for (const other of boxes) {
        scene.toggle(other);
      }
      this.fitted = true;
      await this.layOut();
    }
  }

  /** Opens what is around a box and brings it to the middle. */
  async locate(box: TreeNode): Promise<void> {
    const { scene } = this;
    if (!scene) {
      return;
    }
    scene.reveal(box);
    this.focused = box.key;
    this.fitted = false;
    await this.layOut(() => {
      const rect = scene.rectOf(box);
      if (rect) {
        const scale = Math.max(this.view.scale, 0.8);
        this.view = {
          scale,
          x: rect.x + rect.width / 2 - this.width / 2 / scale,
          y: rect.y + Math.min(rect.height, this.height / scale) / 2 - this.height / 2 / scale
        };
      }
    });
  }

  /** Moves so that a box's corner is at a point of the picture. */
  place(box: TreeNode, at: { x: number; y: number }): void {
    const rect = this.scene?.rectOf(box);
    if (rect) {
      this.view = { scale: 1, x: rect.x - at.x, y: rect.y - at.y };
      this.focused = box.key;
      this.fitted = false;
      this.render();
    }
  }

  /** Where a box's corner is on the screen. */
  cornerOf(box: TreeNode): { x: number; y: number } | null {
    const rect = this.scene?.rectOf(box);
    const frame = this.element.getBoundingClientRect();
    const at = rect && this.toScreen(rect);
    return at ? { x: frame.left + at.x, y: frame.top + at.y } : null;
  }

  focus(): void {
    this.placeItems(false);
    this.layer.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.layouter.dispose();
  }

  /** Where things are, for whoever measures. */
  get state(): { view: Viewport; boxes: number; busy: boolean } {
    let boxes = 0;
    for (const box of this.order()) {
      boxes += box.level > 0 ? 1 : 0;
    }
    return { view: { ...this.view }, boxes, busy: this.busy };
  }

  pan(dx: number, dy: number): void {
    this.view.x += dx / this.view.scale;
    this.view.y += dy / this.view.scale;
    this.fitted = false;
    this.schedule();
  }

  zoom(factor: number, x = this.width / 2, y = this.height / 2): void {
    const { view } = this;
    const scale = Math.max(FARTHEST, Math.min(CLOSEST, view.scale * factor));
    view.x += x / view.scale - x / scale;
    view.y += y / view.scale - y / scale;
    view.scale = scale;
    this.fitted = false;
    this.schedule();
  }

  private async layOut(place?: () => void): Promise<void> {
    const { scene } = this;
    if (!scene) {
      return;
    }
    this.busy = true;
    this.element.dataset.busy = 'true';
    const late = setTimeout(() => {
      this.say('Laying out…');
    }, 150);
    const { groups, jobs } = scene.jobs();
    const made = await this.layouter.run(jobs);
    clearTimeout(late);
    if (!made || scene !== this.scene) {
      return; // a newer one is under way
    }
    scene.take(groups, made);
    this.listed = null;
    this.busy = false;
    this.say('');
    this.settle();
    Object.assign(this.element.dataset, { busy: 'false', boxes: String(this.state.boxes) });
    if (place) {
      place();
    } else if (this.fitted) {
      this.fit();
    }
    this.render();
  }

  private say(text: string): void {
    this.note.textContent = text;
    this.note.hidden = text === '';
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render(true);
    });
  }

  private onMove(event: PointerEvent): void {
    if (this.drag && event.buttons) {
      const [dx, dy] = [event.clientX - this.drag.x, event.clientY - this.drag.y]; // asks nothing of the page's layout
      if (this.drag.moved || Math.hypot(dx, dy) > 3) {
        if (!this.drag.moved) {
          this.drag.moved = true;
          this.element.setPointerCapture(event.pointerId);
        }
        this.view.x = this.drag.view.x - dx / this.view.scale;
        this.view.y = this.drag.view.y - dy / this.view.scale;
        this.fitted = false;
        this.schedule();
      }
      return;
    }
    const box = this.boxAt(event);
    if (box !== this.pointed) {
      this.pointed = box;
      this.element.title = box ? this.host.label(box) : '';
      this.host.hover(box);
    }
  }

  private onClick(event: MouseEvent): void {
    const at = this.pointOf(event);
    if (Math.hypot(at.x - this.from.x, at.y - this.from.y) > 3 && event.detail > 0) {
      return; // it was a drag
    }
    const box = this.boxAt(event);
    if (!box) {
      return;
    }
    this.focused = box.key;
    if (event.detail <= 1) {
      this.host.pin(box);
    }
    this.placeItems(false);
    this.focusItem();
  }

  private onKey(event: KeyboardEvent): void {
    const { scene } = this;
    if (!scene || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const order = this.order();
    const index = order.findIndex(({ key }) => key === this.focused);
    const box = order[index] ?? null;
    const go = (to: TreeNode | undefined): void => {
      if (to) {
        this.goTo(to);
      }
    };
    switch (event.key) {
      case 'ArrowDown':
        go(order[index + 1]);
        break;
      case 'ArrowUp':
        go(order[index - 1]);
        break;
      case 'Home':
        go(order[0]);
        break;
      case 'End':
        go(order.at(-1));
        break;
      case 'ArrowRight':
        if (box?.group && !scene.isOpen(box)) {
          void this.toggle(box);
        } else {
          go(order[index + 1]);
        }
        break;
      case 'ArrowLeft':
        if (box && scene.isOpen(box)) {
          void this.toggle(box);
        } else {
          go(box ? (scene.groupOf(box) ?? undefined) : undefined);
        }
        break;
      case '*':
        void this.openAll(box);
        break;
      case 'Enter':
        if (box?.group) {
          void this.toggle(box);
        } else if (box) {
          this.host.pin(box);
        }
        break;
      case '[':
      case ']':
        go(box ? this.alongEdge(box, event.key === ']') : undefined);
        break;
      case 'n':
      case 'N':
        go(this.nextApart(index));
        break;
      case ' ':
        this.fit();
        break;
      case '+':
      case '=':
        this.zoom(STEP);
        break;
      case '-':
        this.zoom(1 / STEP);
        break;
      default:
        if (!this.host.key(event, box)) {
          return;
        }
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private goTo(box: TreeNode): void {
    this.focused = box.key;
    const rect = this.scene?.rectOf(box);
    if (rect) {
      const { x, y } = this.toScreen(rect);
      const [wide, tall] = [rect.width * this.view.scale, rect.height * this.view.scale];
      if (x < 0 || y < 0 || x + Math.min(wide, 60) > this.width || y + Math.min(tall, 24) > this.height) {
        this.view.x += (x + Math.min(wide, this.width) / 2 - this.width / 2) / this.view.scale;
        this.view.y += (y + Math.min(tall, this.height) / 2 - this.height / 2) / this.view.scale;
        this.fitted = false;
      }
    }
    this.host.hover(box);
    this.render(true);
    this.focusItem();
  }

  private alongEdge(box: TreeNode, forward: boolean): TreeNode | undefined {
    const group = this.scene?.groupOf(box) ?? null;
    const boxes = this.scene?.childrenOf(group) ?? [];
    const at = boxes.indexOf(box);
    const edge = this.scene?.source.edgesOf(group).find(({ from, to }) => (forward ? from : to) === at);
    return edge && boxes[forward ? edge.to : edge.from];
  }

  /** The next box that reads a value which was not fused. */
  private nextApart(index: number): TreeNode | undefined {
    const order = this.order();
    const readers = new Set<TreeNode>();
    for (const group of [null, ...order.filter(box => this.scene?.isOpen(box))]) {
      const boxes = this.scene?.childrenOf(group) ?? [];
      for (const { to, boundary } of this.scene?.source.edgesOf(group) ?? []) {
        const reader = boxes[to];
        if (boundary && reader) {
          readers.add(reader);
        }
      }
    }
    return [...order.slice(index + 1), ...order.slice(0, index + 1)].find(box => readers.has(box));
  }

  /** All boxes that are shown; made once a layout, because a moving picture asks for them in every frame. */
  private order(): readonly TreeNode[] {
    return (this.listed ??= [...(this.scene?.shown() ?? [])]);
  }

  /** A window of tree items around the one in focus, each over its box; the canvas itself says nothing to a reader. */
  private placeItems(again: boolean): void {
    const { scene } = this;
    if (!scene || (again && !this.layer.contains(document.activeElement))) {
      return;
    }
    const order = this.order();
    const at = Math.max(
      0,
      order.findIndex(({ key }) => key === this.focused)
    );
    this.focused = order[at]?.key ?? '';
    const first = Math.max(0, at - AROUND);
    const shown = order.slice(first, at + AROUND);
    while (this.layer.children.length > shown.length) {
      this.layer.lastElementChild?.remove();
    }
    shown.forEach((box, index) => {
      let element = this.layer.children[index] as HTMLElement | undefined;
      if (!element) {
        element = h('div', { class: 'jl-item', role: 'treeitem', tabindex: '-1' });
        this.layer.append(element);
      }
      const place = box.key === this.focused ? 0 : -1;
      if (element.tabIndex !== place) {
        element.tabIndex = place;
      }
      if (!again || element.dataset.key !== box.key) {
        this.nameItem(element, box, scene);
      }
      const rect = scene.rectOf(box);
      const { x, y } = rect ? this.toScreen(rect) : { x: 0, y: 0 };
      const tall = scene.isOpen(box) ? 26 : (rect?.height ?? 0);
      Object.assign(element.style, {
        left: `${Math.max(-20, Math.min(this.width, x))}px`,
        top: `${Math.max(-20, Math.min(this.height, y))}px`,
        width: `${Math.max(8, (rect?.width ?? 0) * this.view.scale)}px`,
        height: `${Math.max(8, tall * this.view.scale)}px`
      });
    });
  }

  private nameItem(element: HTMLElement, box: TreeNode, scene: Scene): void {
    element.dataset.key = box.key;
    element.dataset.id = box.id;
    element.dataset.kind = box.kind;
    const siblings = scene.childrenOf(scene.groupOf(box));
    element.setAttribute('aria-label', this.host.label(box));
    element.setAttribute('aria-level', String(Math.max(1, box.level)));
    element.setAttribute('aria-setsize', String(siblings.length));
    element.setAttribute('aria-posinset', String(siblings.indexOf(box) + 1));
    element.setAttribute('aria-selected', String(this.host.pinned(box)));
    if (box.group) {
      element.setAttribute('aria-expanded', String(scene.isOpen(box)));
    } else {
      element.removeAttribute('aria-expanded');
    }
  }

  private focusItem(): void {
    for (const element of this.layer.children as HTMLCollectionOf<HTMLElement>) {
      if (element.dataset.key === this.focused) {
        element.focus({ preventScroll: true });
      }
    }
  }

  private boxAt(event: MouseEvent): TreeNode | null {
    const { x, y } = this.pointOf(event);
    return this.scene?.at(this.view.x + x / this.view.scale, this.view.y + y / this.view.scale) ?? null;
  }

  private pointOf(event: MouseEvent): { x: number; y: number } {
    const frame = this.element.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  private toScreen(rect: Rect): { x: number; y: number } {
    return { x: (rect.x - this.view.x) * this.view.scale, y: (rect.y - this.view.y) * this.view.scale };
  }

  private readonly canvas = new CanvasView({ 'aria-hidden': 'true' });
  private readonly minimap = new Minimap((x, y) => {
    this.view.x = x - this.width / 2 / this.view.scale;
    this.view.y = y - this.height / 2 / this.view.scale;
    this.fitted = false;
    this.schedule();
  });
  private readonly layer: HTMLElement;
  private readonly note: HTMLElement;
  private scene: Scene | null = null;
  private listed: readonly TreeNode[] | null = null;
  private view: Viewport = { x: 0, y: 0, scale: 1 };
  /** Of what the screen shows. */
  width = 0;
  height = 0;
  private room = { width: 0, most: 0, least: 0 };
  private fitted = true;
  private busy = false;
  private focused = '';
  private pointed: TreeNode | null = null;
  private from = { x: 0, y: 0 };
  private drag: { x: number; y: number; moved: boolean; view: Viewport } | null = null;
  private frame = 0;
}
