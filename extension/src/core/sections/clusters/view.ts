import { refusal } from '../../base/read';
import { h, isChord, on, takeKey } from '../../base/dom';
import { shareText, some, whereOf } from '../../base/format';
import type { Linked } from '../../report/links';
import type { Operation, Report } from '../../report/report';
import { stateKey, type Section, type SectionContext } from '../../panel/section';
import type { FlowNode } from './map/boxes';
import { FindBox } from './find';
import { flowOf, slowest, type Flow } from './flow';
import { foundIn, idOfBox, isEdgeLit, isLit, type Found as InMap } from './map/lit';
import { MapView } from './map/map';
import { MemoryFold } from './memory';
import { Notice, type NoticeAction } from './notice';
import { Parts } from './parts';
import type { SceneSource } from './map/scene';
import { SearchIndex, type Found } from './search';
import { SpineView } from './spine';
import { slowestCluster, summaryOf } from './summary';
import { aboutOf, ClustersTable, labelOf } from './table';
import { Tools } from './map/tools';
import { GraphTree, neighbourhood, neighbourSource, type TreeNode } from './tree';
import { describe } from './words';

const MOST_BOXES = 40;
const FIRST_BOXES = 12;
/** More boxes and open operations than these are drawn as a map; fewer, as a spine. */
const MOST_OPEN = 60;
const MOST_RADIUS = 6;

/** The cluster graph: a spine while it is small, a map when it is not, one operation's neighbours, or a table. */
export class ClustersView {
  constructor(
    private readonly section: Section,
    private readonly context: Pick<SectionContext, 'selection' | 'kernel' | 'goToLine'>
  ) {
    const { selection } = context;
    this.spine = new SpineView({
      hover: id => selection.hover(id),
      pin: id => selection.togglePin(id),
      get pinned() {
        return selection.pin;
      },
      toggle: id => void this.toggle(id),
      menu: (id, anchor) => selection.menu.emit({ id, anchor }),
      key: (event, id) => this.onPictureKey(event, selection.links?.op(id) ?? null)
    });
    const ofBoxes = {
      hover: (box: TreeNode | null): void => selection.hover(box ? idOfBox(selection, box) : null),
      pin: (box: TreeNode): void => {
        const id = idOfBox(selection, box);
        if (id) {
          selection.togglePin(id);
        }
      },
      load: (box: TreeNode): Promise<void> | null => this.load(box)
    };
    this.map = new MapView({
      ...ofBoxes,
      label: labelOf,
      heat: box => this.tools.heat?.of(box) ?? null,
      lit: box => isLit(selection, box),
      litEdge: (edge, group) => isEdgeLit(selection, this.around?.source ?? this.tree(), edge, group),
      found: () => this.found(),
      pinned: box => selection.pin !== null && selection.pin === idOfBox(selection, box),
      key: (event, box) => {
        if (box && event.key.toLowerCase() === 'x') {
          selection.menu.emit({
            id: idOfBox(selection, box) ?? '',
            anchor: document.activeElement ?? this.map.element
          });
          return true;
        }
        return this.onPictureKey(event, box?.op ?? null);
      }
    });
    this.table = new ClustersTable(ofBoxes);
    this.find = new FindBox(found => void this.locate(found));
    this.tools = new Tools(
      this.find,
      () => this.setMap(!this.isMap()),
      () => this.render()
    );
    this.status = h('div.jl-note.jl-pinned', { role: 'status' });
    this.picture = h('div');
    this.memory = new MemoryFold(({ producer, plan }) =>
      selection.togglePin(selection.links?.idOf(producer, plan) ?? producer)
    );
    on(section.body, { keydown: event => isChord(event) || takeKey(event, { '/': () => this.tools.search() }) });
  }

  show(report: Report, width: number): void {
    if (report !== this.parts?.report) {
      const other = report.cell.id !== this.parts?.report.cell.id;
      this.parts = new Parts(report);
      if (other) {
        this.showAll = false;
        this.touched = false;
        this.asMap = null;
        this.around = null;
      }
      this.take(report);
      if (!this.touched) {
        const first = slowestCluster(this.nodes());
        this.open = new Set(first ? [first.id] : []);
        if (this.openCount() > MOST_OPEN) {
          this.open.clear(); // a picture that can be read comes first; the map is one click away
        }
      }
    }
    // Events come by the thousand, and each batch shows the panel anew: what is drawn already is not drawn again.
    const key = stateKey(this.section, width, this.context.selection);
    if (this.drawn?.report === report && this.drawn.key === key) {
      return;
    }
    this.drawn = { report, key };
    this.width = width;
    this.section.summary = summaryOf(report);
    this.render();
  }

  search(): void {
    this.tools.search();
  }

  /** Draws again, after a change of the selection or of the section. */
  render(): void {
    const { flow } = this;
    if (!flow || !this.section.open) {
      return;
    }
    const { body } = this.section;
    const all = this.nodes().length;
    if (all + flow.statements.length === 0) {
      body.replaceChildren(h('p.jl-muted', 'No NumPy operation was found: there is nothing to compile.'));
      return;
    }
    if (this.picture.parentElement !== body) {
      body.replaceChildren(this.tools.element, this.notice.element, this.picture, this.status, this.memory.element);
    }
    this.tools.render(flow, this.width, this.isMap(), !this.section.asTable && all > 0);
    if (this.parts) {
      this.memory.show(this.parts.report);
    }
    if (this.section.asTable) {
      this.put(this.table.element);
      if (this.tabled !== this.tree()) {
        this.tabled = this.tree();
        this.table.show(this.tree());
      }
      this.notice.hide();
    } else if (this.around || this.isMap()) {
      this.renderMap();
    } else {
      const part = all > MOST_BOXES && !this.showAll ? slowest(flow, FIRST_BOXES) : null;
      this.put(this.spine.element);
      this.showNotice(part, all);
      const { links, lit } = this.context.selection;
      this.spine.render(part?.flow ?? flow, {
        width: this.width - 12,
        open: this.open,
        linked: lit,
        heat: this.tools.heat,
        idOf: (name, plan) => links?.idOf(name, plan) ?? name
      });
    }
    this.showPinned();
  }

  dispose(): void {
    this.map.dispose();
  }

  /** For whoever measures, and for tests. */
  get shown(): MapView {
    return this.map;
  }

  private take(report: Report): void {
    this.flow = flowOf(report);
    this.built = null;
    this.find.index = new SearchIndex(this.flow);
    this.tools.reset();
  }

  private renderMap(): void {
    this.put(this.map.element);
    const source = this.around?.source ?? this.tree();
    const room = this.section.body.closest('.jl-panel')?.clientHeight ?? 640;
    const most = Math.round(Math.max(280, Math.min(720, room * 0.62)));
    this.map.resize(this.width - 12, most, this.around ? 120 : most); // a few neighbours need no more room than they take
    this.showAround();
    if (this.map.shows(source)) {
      this.map.render();
      const { pin } = this.context.selection;
      if (pin !== this.brought) {
        this.brought = pin;
        this.map.bring(pin === null ? [] : this.found().boxes);
      }
    } else {
      const open = this.around ? [] : this.firstOpen();
      void this.map.show(source, open);
    }
  }

  /** What is open in the spine is open in the map, as far as that is to be seen at once. */
  private firstOpen(): TreeNode[] {
    const tree = this.tree();
    const boxes = tree.roots.flatMap(root => (root.kind === 'plan' ? [root, ...tree.childrenOf(root)] : [root]));
    return boxes.flatMap(box =>
      box.kind === 'plan' ? [box] : this.open.has(box.flow?.id ?? '') ? [box, ...kernelsToOpen(tree, box)] : []
    );
  }

  private showNotice(part: { shown: number; of: number; share: number } | null, all: number): void {
    if (!part) {
      this.notice.hide();
      return;
    }
    this.notice.show(`Showing the ${part.shown} slowest of ${all} boxes${shareText(part.share)}. `, [
      [
        'Show all',
        () => {
          this.showAll = true;
          this.render();
        }
      ],
      ['search', () => this.tools.search()]
    ]);
  }

  private showAround(): void {
    const { around } = this;
    if (!around) {
      this.notice.hide();
      return;
    }
    const { op, radius, source } = around;
    const step = (name: string, to: number): NoticeAction => [name, () => this.showNeighbours(op, to)];
    const within = `${some(source.roots.length - 1, 'operation')} within ${some(radius, 'step')}`;
    this.notice.show(`Around ${op.written} (${whereOf(op)}): ${within}. `, [
      ...(radius > 1 ? [step('fewer', radius - 1)] : []),
      ...(radius < MOST_RADIUS ? [step('more', radius + 1)] : []),
      ['the whole graph', () => this.showNeighbours(null)]
    ]);
  }

  private async toggle(id: string): Promise<void> {
    this.touched = true;
    const before = this.spine.cornerOf(id);
    const node = this.nodes().find(other => other.id === id);
    if (!this.open.delete(id)) {
      const box = node && this.tree().named(node.cluster ? node.name : (node.ops[0]?.name ?? ''));
      await (box ? this.load(box) : null);
      this.open.add(id);
    }
    this.render();
    if (this.isMap() && node && before) {
      await this.intoMap(node, before);
    } else {
      this.keepInPlace(this.spine.cornerOf(id), before);
    }
  }

  /** The box that was opened in the spine is where it was, now in the map. */
  private async intoMap(node: FlowNode, before: { x: number; y: number }): Promise<void> {
    const box = this.tree().named(node.cluster ? node.name : (node.ops[0]?.name ?? ''));
    await this.map.show(this.tree(), this.firstOpen());
    if (box) {
      const frame = this.map.element.getBoundingClientRect();
      this.map.place(box, {
        x: Math.max(8, Math.min(before.x - frame.left, this.width / 2)),
        y: Math.max(8, Math.min(before.y - frame.top, frame.height / 2))
      });
      this.keepInPlace(this.map.cornerOf(box), before);
      this.map.focus();
    }
  }

  /** Scrolls so that what was clicked stays where it was on the screen. */
  private keepInPlace(now: { y: number } | null, before: { y: number } | null): void {
    if (now && before && Math.abs(now.y - before.y) > 1) {
      const scroller = this.section.body.closest<HTMLElement>('.jl-panel');
      scroller?.scrollBy({ top: now.y - before.y, behavior: 'instant' });
    }
  }

  /** What is missing of a box comes from the kernel; null where all is here. */
  private load(box: TreeNode): Promise<void> | null {
    const { parts, context } = this;
    const cluster = box.flow?.cluster;
    if (!cluster || !parts?.lacks(cluster, box.ops.length)) {
      return null;
    }
    if (!context.kernel) {
      this.say(
        `The ${some(box.count, 'operation')} of ${cluster.name} were not saved. Run the cell again to see them.`
      );
      return null;
    }
    return parts
      .fetch(context.kernel, cluster.name)
      .then(came => {
        if (came && parts === this.parts) {
          this.touched = true;
          this.open.add(box.flow?.id ?? '');
          this.take(parts.whole);
          this.render();
        }
      })
      .catch((error: unknown) => this.say(refusal(error)));
  }

  private async locate(found: Found): Promise<void> {
    const { links } = this.context.selection;
    const id = found.boundary ? links?.edgeId(found.boundary) : (links?.idOf(found.name, found.plan) ?? found.name);
    if (id && this.context.selection.pin !== id) {
      this.context.selection.togglePin(id);
    }
    const tree = this.tree();
    const consumer = found.boundary ? links?.op(links.idOf(found.boundary.consumer, found.plan)) : null;
    const op = found.op ?? consumer ?? null;
    const box = op ? tree.find(op) : tree.named(found.name);
    if (!box) {
      return;
    }
    if (this.section.asTable) {
      this.table.locate(box);
      return;
    }
    this.around = null;
    const home = homeOf(box)?.flow;
    if (!this.isMap() && home && this.openCount(home) + (this.open.has(home.id) ? 0 : home.count) <= MOST_OPEN) {
      this.open.add(home.id);
      this.showAll ||= this.nodes().length > MOST_BOXES;
      this.touched = true;
      this.render();
      const target = op && !found.boundary ? `op:${id ?? ''}` : (id ?? '');
      if (this.spine.focus(target) || this.spine.focus(home.id)) {
        return;
      }
    }
    this.asMap = true;
    this.render();
    if (!this.map.shows(tree)) {
      await this.map.show(tree, this.firstOpen());
    }
    await this.map.locate(box);
    this.map.focus();
  }

  private showNeighbours(op: Operation | null, radius = 2): void {
    const tree = this.tree();
    this.around = op && { op, radius, source: neighbourSource(tree, neighbourhood(tree, op, radius)) };
    this.render();
    this.map.focus();
  }

  private onPictureKey(event: KeyboardEvent, op: Operation | null): boolean {
    const { around } = this;
    return takeKey(event, {
      b: () => (op || around ? this.showNeighbours(around ? null : op) : false),
      m: () => this.setMap(!this.isMap()),
      Escape: () => (around ? this.showNeighbours(null) : false)
    });
  }

  private setMap(map: boolean): void {
    this.asMap = map;
    this.around = null;
    if (!map) {
      this.open = new Set([...this.open].filter(id => (this.nodeOf(id)?.count ?? 0) <= MOST_OPEN));
    }
    this.render();
  }

  private isMap(): boolean {
    return this.asMap ?? this.openCount() > MOST_OPEN;
  }

  /** Boxes that the spine would have. */
  private openCount(besides?: FlowNode): number {
    const nodes = this.nodes();
    const few = nodes.length > MOST_BOXES && !this.showAll ? FIRST_BOXES : nodes.length;
    return nodes.reduce((sum, node) => sum + (this.open.has(node.id) && node !== besides ? node.count : 0), few);
  }

  private showPinned(): void {
    const { pin, links } = this.context.selection;
    const op = pin === null ? undefined : links?.op(pin);
    const box = pin === null || op ? undefined : this.tree().named(pin);
    const text = op ? `Pinned: ${describe(op)}` : box && this.section.asTable ? aboutOf(box) : this.said;
    if (this.pinned !== `${text}${pin ?? ''}`) {
      this.pinned = `${text}${pin ?? ''}`;
      const [at] = op?.lines ?? [];
      this.status.replaceChildren(
        text,
        ' ',
        op ? h('button.jl-link', { onclick: () => this.showNeighbours(op) }, 'neighbours (B)') : '',
        at ? ' ' : '',
        at ? h('button.jl-link', { onclick: () => this.context.goToLine(at.file, at.line) }, 'to the line') : ''
      );
    }
    this.status.hidden = text === '';
  }

  /** Asked for in every frame of a picture that moves. */
  private found(): InMap {
    const { selection } = this.context;
    const tree = this.tree();
    if (this.sought?.lit !== selection.lit || this.sought.tree !== tree) {
      this.sought = { lit: selection.lit, tree, found: foundIn(selection, tree) };
    }
    return this.sought.found;
  }

  private say(text: string): void {
    this.said = text;
    this.showPinned();
  }

  private put(element: HTMLElement): void {
    if (element.parentElement !== this.picture) {
      this.picture.replaceChildren(element);
    }
  }

  private tree(): GraphTree {
    const flow = this.flow ?? { parts: [], statements: [], seconds: null };
    return (this.built ??= new GraphTree(flow));
  }

  private nodes(): FlowNode[] {
    return this.flow?.parts.flatMap(part => part.nodes) ?? [];
  }

  private nodeOf(id: string): FlowNode | undefined {
    return this.nodes().find(node => node.id === id);
  }

  private readonly spine: SpineView;
  private readonly map: MapView;
  private readonly table: ClustersTable;
  private readonly find: FindBox;
  private readonly tools: Tools;
  private readonly notice = new Notice();
  private readonly status: HTMLElement;
  private readonly picture: HTMLElement;
  private readonly memory: MemoryFold;
  private parts: Parts | null = null;
  private flow: Flow | null = null;
  private built: GraphTree | null = null;
  private tabled: GraphTree | null = null;
  private open = new Set<string>();
  private showAll = false;
  /** Whether the user has opened or closed a box; until then the slowest one is open. */
  private touched = false;
  /** What the user has chosen; null: by size. */
  private asMap: boolean | null = null;
  private around: { op: Operation; radius: number; source: SceneSource } | null = null;
  private width = 0;
  private drawn: { report: Report; key: string } | null = null;
  private pinned = '';
  /** The pin that the map has gone to. */
  private brought: string | null = null;
  private sought: { lit: Linked | null; tree: GraphTree; found: InMap } | null = null;
  private said = '';
}

/** The box of the spine that a box is in. */
function homeOf(box: TreeNode): TreeNode | null {
  let at: TreeNode | null = box;
  while (at && !at.flow) {
    at = at.parent;
  }
  return at;
}

function kernelsToOpen(tree: GraphTree, box: TreeNode): TreeNode[] {
  return box.count <= 400 ? tree.childrenOf(box).filter(inside => inside.kind === 'kernel') : [];
}
