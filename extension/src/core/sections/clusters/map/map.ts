import { CanvasView } from '../../../base/canvas';
import { h, isChord, on, takeKey } from '../../../base/dom';
import { Camera, firstScale } from './camera';
import { Layouter } from './layouter';
import type { Found } from './lit';
import { MapItems } from './map-items';
import { Minimap } from './minimap';
import { Scene, type Rect, type SceneSource } from './scene';
import { drawScene, type SceneLook, type Viewport } from './scene-draw';
import type { TreeEdge, TreeNode } from '../tree';

/** What the map asks of the section that it is a picture of. */
export interface MapHost {
  /** What a reader hears of a box. */
  label(box: TreeNode): string;
  heat(box: TreeNode): number | null;
  lit(box: TreeNode): boolean;
  litEdge(edge: TreeEdge, group: TreeNode | null): boolean;
  /** Where what is pointed at lies. */
  found(): Found;
  hover(box: TreeNode | null): void;
  pin(box: TreeNode): void;
  pinned(box: TreeNode): boolean;
  /** Before a box opens: resolves when all that is inside of it is here; null where it is. */
  load(box: TreeNode): Promise<void> | null;
  /** A key that the map itself has no use for. */
  key(event: KeyboardEvent, box: TreeNode | null): boolean;
}

const STEP = 1.25;

/** A graph of any size on a canvas that is moved and zoomed; boxes open in place. */
export class MapView {
  readonly element: HTMLElement;

  constructor(
    private readonly host: MapHost,
    private readonly layouter = new Layouter()
  ) {
    this.items = new MapItems(host);
    this.note = h('div.jl-map-note.jl-note', { role: 'status', hidden: true });
    this.element = h('div.jl-frame.jl-map', this.canvas.element, this.items.element, this.minimap.element, this.note);
    on(this.element, {
      pointerdown: event => {
        if (event.button === 0) {
          this.drag = { x: event.clientX, y: event.clientY, moved: false };
          this.from = this.pointOf(event);
        }
      },
      pointermove: event => this.onMove(event),
      pointerup: () => {
        this.drag = null;
      },
      pointerleave: () => this.host.hover(null),
      click: event => this.onClick(event),
      dblclick: event => {
        const box = this.boxAt(event);
        if (box) {
          void this.toggle(box);
        }
      },
      keydown: event => this.onKey(event),
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
          this.zoom(Math.exp(-event.deltaY * 0.01), this.pointOf(event));
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
    this.camera.fitted = true;
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
    const wanted = scene?.ready ? Math.ceil(scene.height * firstScale(shrunk)) + 24 : least;
    const height = Math.max(least, Math.min(most, wanted));
    if (width !== this.width || height !== this.height) {
      [this.width, this.height] = [width, height];
      this.element.style.height = `${height}px`;
      if (this.camera.fitted && scene) {
        this.camera.begin(scene, this);
        this.schedule();
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
    const found = this.host.found();
    const look: SceneLook = {
      width: this.width,
      height: this.height,
      measure: brush.measure,
      theme: brush.theme,
      heat: box => this.host.heat(box),
      lit: box => this.host.lit(box),
      holds: box => found.around.has(box),
      litEdge: (edge, group) => this.host.litEdge(edge, group),
      covered: this.minimap.areaOf(scene, this.camera, this)
    };
    drawScene(brush.context, scene, this.camera, look);
    this.minimap.show(scene, this.camera, this, look.heat, again ? null : found.boxes);
    this.placeItems(again);
  }

  /** The whole graph, in the middle, and never larger than it is. */
  fit(): void {
    const { scene } = this;
    if (!scene) {
      return;
    }
    this.camera.fit(scene, this);
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
    const at = corner ?? (before && this.camera.toScreen(before));
    scene.toggle(box);
    this.focused = box.key;
    this.camera.fitted = false;
    await this.layOut(() => {
      const rect = scene.rectOf(box);
      if (rect && at) {
        this.camera.place(rect, at);
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
      this.camera.fitted = true;
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
    this.camera.fitted = false;
    await this.layOut(() => {
      const rect = scene.rectOf(box);
      if (rect) {
        this.camera.locate(rect, this);
      }
    });
  }

  /** Moves so that one of some boxes is seen, or what it lies in; where one is seen already nothing moves. */
  bring(boxes: readonly TreeNode[]): void {
    const { scene } = this;
    const rects = boxes.map(box => scene?.shownRectOf(box)).filter(rect => rect != null);
    const [first] = rects;
    if (first && !rects.some(rect => this.camera.sees(rect, this))) {
      this.camera.reveal(first, this);
      this.schedule();
    }
  }

  /** Moves so that a box's corner is at a point of the picture. */
  place(box: TreeNode, at: { x: number; y: number }): void {
    const rect = this.scene?.rectOf(box);
    if (rect) {
      this.camera.scale = 1;
      this.camera.place(rect, at);
      this.focused = box.key;
      this.render();
    }
  }

  /** Where a box's corner is on the screen. */
  cornerOf(box: TreeNode): { x: number; y: number } | null {
    const rect = this.scene?.rectOf(box);
    const frame = this.element.getBoundingClientRect();
    const at = rect && this.camera.toScreen(rect);
    return at ? { x: frame.left + at.x, y: frame.top + at.y } : null;
  }

  focus(): void {
    this.placeItems(false);
    this.items.focus(this.focused);
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
    const { x, y, scale } = this.camera;
    return { view: { x, y, scale }, boxes, busy: this.busy };
  }

  pan(dx: number, dy: number): void {
    this.camera.pan(dx, dy);
    this.schedule();
  }

  /** Around a point of the picture; without one around its middle. */
  zoom(factor: number, at = { x: this.width / 2, y: this.height / 2 }): void {
    this.camera.zoom(factor, at);
    this.schedule();
  }

  private async layOut(place?: () => void): Promise<void> {
    const { scene } = this;
    if (!scene) {
      return;
    }
    this.busy = true;
    this.element.dataset.busy = 'true';
    const late = setTimeout(() => this.say('Laying out…'), 150);
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
    } else if (this.camera.fitted) {
      this.camera.begin(scene, this);
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
        Object.assign(this.drag, { x: event.clientX, y: event.clientY });
        this.pan(-dx, -dy);
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
    this.items.focus(this.focused);
  }

  private onKey(event: KeyboardEvent): void {
    const { scene } = this;
    if (!scene || isChord(event)) {
      return;
    }
    const order = this.order();
    const index = order.findIndex(({ key }) => key === this.focused);
    const box = order[index] ?? null;
    const go = (to: TreeNode | null | undefined): void => {
      if (to) {
        this.goTo(to);
      }
    };
    const keys = {
      ArrowDown: () => go(order[index + 1]),
      ArrowUp: () => go(order[index - 1]),
      Home: () => go(order[0]),
      End: () => go(order.at(-1)),
      ArrowRight: () => (box?.group && !scene.isOpen(box) ? this.toggle(box) : go(order[index + 1])),
      ArrowLeft: () => (box && scene.isOpen(box) ? this.toggle(box) : go(box && scene.groupOf(box))),
      '*': () => this.openAll(box),
      Enter: () => box && (box.group ? this.toggle(box) : this.host.pin(box)),
      '[': () => go(box && scene.along(box, false)),
      ']': () => go(box && scene.along(box, true)),
      n: () => go(scene.nextApart(order, index)),
      ' ': () => this.fit(),
      '+': () => this.zoom(STEP),
      '=': () => this.zoom(STEP),
      '-': () => this.zoom(1 / STEP)
    };
    takeKey(event, keys, () => this.host.key(event, box));
  }

  private goTo(box: TreeNode): void {
    this.focused = box.key;
    const rect = this.scene?.rectOf(box);
    if (rect) {
      this.camera.reveal(rect, this);
    }
    this.host.hover(box);
    this.render(true);
    this.items.focus(this.focused);
  }

  /** All boxes that are shown; made once a layout, because a moving picture asks for them in every frame. */
  private order(): readonly TreeNode[] {
    return (this.listed ??= [...(this.scene?.shown() ?? [])]);
  }

  private placeItems(again: boolean): void {
    const { scene } = this;
    if (!scene || (again && !this.items.isFocused)) {
      return;
    }
    const order = this.order();
    const at = Math.max(
      0,
      order.findIndex(({ key }) => key === this.focused)
    );
    this.focused = order[at]?.key ?? '';
    const { width, height } = this;
    const screen = { width, height, scale: this.camera.scale, at: (rect: Rect) => this.camera.toScreen(rect) };
    this.items.show(scene, order, at, screen, again);
  }

  private boxAt(event: MouseEvent): TreeNode | null {
    const { x, y } = this.camera.toScene(this.pointOf(event));
    return this.scene?.at(x, y) ?? null;
  }

  private pointOf(event: MouseEvent): { x: number; y: number } {
    const frame = this.element.getBoundingClientRect();
    return { x: event.clientX - frame.left, y: event.clientY - frame.top };
  }

  private readonly canvas = new CanvasView({ 'aria-hidden': 'true' });
  private readonly minimap = new Minimap((x, y) => {
    this.camera.centre({ x, y }, this);
    this.schedule();
  });
  private readonly items: MapItems;
  private readonly note: HTMLElement;
  private scene: Scene | null = null;
  private listed: readonly TreeNode[] | null = null;
  private readonly camera = new Camera();
  /** Of what the screen shows. */
  width = 0;
  height = 0;
  private room = { width: 0, most: 0, least: 0 };
  private busy = false;
  private focused = '';
  private pointed: TreeNode | null = null;
  private from = { x: 0, y: 0 };
  private drag: { x: number; y: number; moved: boolean } | null = null;
  private frame = 0;
}
