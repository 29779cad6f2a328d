import { chooser, h, icon, iconButton } from '../../base/dom';
import { arrayType, joined, some } from '../../base/format';
import { idText, type Linked, type Links } from '../../report/links';
import type { CellState } from '../../report/model';
import type { Cluster, Report } from '../../report/report';
import type { Section, SectionContext, SectionView } from '../../panel/section';
import { CodePane, NEEDS_KERNEL } from './pane';
import { stageIn, STAGES, stagesOf } from './stages';
import { clustersToRead, clusterToRead, codeRows, isLit } from './rows';
import { SourcePane } from './source';
import { CodeStore } from './store';

/** It stands in the second row, which is what is pinned has the type of. */
const PIN_HELP = '↑ ↓ go from line to line, ⏎ pins, G goes to it in the notebook.';
/** From this width on two stages are read at once. */
const TWO_PANES = 520;

/** The source beside what became of it; hover one line and its match lights everywhere, click and it stays. */
export class CodeView implements SectionView {
  constructor(
    private readonly section: Section,
    private readonly context: SectionContext
  ) {
    this.store = new CodeStore(() => {
      this.renderPanes();
      this.renderPinned();
    });
    const chosen = (): void => this.renderPanes();
    this.source = new SourcePane(context);
    this.panes = [
      new CodePane(context, this.store, 'program', chosen),
      new CodePane(context, this.store, 'asm', chosen)
    ];
    this.frame = h(
      'div.jl-panes',
      this.source.element,
      this.head,
      this.panes.map(pane => pane.element),
      this.alone
    );
  }

  show(report: Report, width: number, cell: CellState): void {
    const { links } = this.context.selection;
    this.report = report;
    this.width = width;
    this.live = cell.origin === 'live';
    if (links) {
      this.store.show(report, links, cell.running);
    }
    this.section.summary = report.clusters.length ? 'Hover to link, click to pin' : '';
    if (!this.section.open) {
      return;
    }
    const { body } = this.section;
    if (this.frame.parentElement !== body) {
      body.replaceChildren(this.pinned, this.frame);
    }
    this.source.show(report);
    this.renderPanes();
    this.renderPinned();
  }

  render(): void {
    if (!this.section.open || !this.report) {
      return;
    }
    const { pin } = this.context.selection;
    if (pin !== this.pin) {
      this.pin = pin;
      this.renderPanes(); // another cluster may have been pinned
      this.renderPinned();
    }
    this.source.relight();
    for (const pane of this.panes) {
      pane.relight();
    }
  }

  private renderPanes(): void {
    const { links, held } = this.context.selection;
    if (!this.section.open || !this.report || !links) {
      return;
    }
    const cluster = clusterToRead(this.report, links, held, this.read);
    const id = cluster ? links.idOf(cluster.name, cluster.plan) : '';
    this.read = id;
    // Without its kernel there is only what was read before: else one line stands for it.
    const readable = (this.live && this.context.kernel !== null) || !cluster || this.store.isKnown(cluster);
    this.alone.hidden = readable;
    if (!readable) {
      this.head.hidden = true;
      for (const pane of this.panes) {
        pane.element.hidden = true;
      }
      return;
    }
    this.renderHead(cluster, id, links);
    const stages = stagesOf(cluster?.device ?? '');
    const shown = this.width >= TWO_PANES ? 2 : 1;
    this.frame.classList.toggle('jl-beside', shown === 2);
    this.panes.forEach((pane, index) => {
      pane.element.hidden = index >= shown;
      if (index < shown) {
        const { kernel } = this.context;
        if (cluster && kernel && this.live) {
          this.store.load(kernel, cluster, stageIn(stages, pane.stage));
        }
        pane.show(cluster, id, stages, this.live);
      }
    });
  }

  /** Which cluster's code it is, where there are several. */
  private renderHead(cluster: Cluster | null, id: string, links: Links): void {
    const all = this.report ? clustersToRead(this.report) : [];
    const ids = [...new Set(all.map(({ name, plan }) => links.idOf(name, plan)))];
    this.head.hidden = ids.length < 2;
    const key = [id, ...ids].join('\n');
    if (this.head.hidden || key === this.headShown || !cluster) {
      return;
    }
    this.headShown = key;
    const names = ids.map(name => ({ value: name, text: idText(links, name) }));
    const choose = (name: string): void => {
      this.read = name;
      const { selection } = this.context;
      if (selection.pin !== null && !links.of(selection.pin).clusters.has(name)) {
        selection.togglePin(selection.pin);
      }
      this.renderPanes();
    };
    this.head.replaceChildren(chooser('Cluster whose code is read', names, id, choose));
  }

  /** "Pinned: Exp, line 5 · k0 · 2 Program lines, 6 instructions" */
  private renderPinned(): void {
    const { links, held: linked } = this.context.selection;
    if (!linked || !links || linked.kind === 'none') {
      // It keeps its room: what is clicked must not move from under the pointer.
      this.pinned.replaceChildren(
        h('div.jl-grow', { role: 'status' }, 'Nothing pinned: click a line.', h('div', { title: PIN_HELP }, PIN_HELP))
      );
      return;
    }
    const [title, type] = pinnedTexts(linked, links);
    const facts = [
      [...linked.kernels].map(kernel => idText(links, kernel)).join(', '),
      this.counts(linked, links)
    ].filter(Boolean);
    const clear = iconButton('no', 'Clear (Esc)', () => this.context.selection.clear());
    this.pinned.replaceChildren(
      icon('pin'),
      h(
        'div.jl-grow',
        { role: 'status' },
        h('b', `Pinned: ${title}`),
        facts.length > 0 && ` · ${facts.join(' · ')}`,
        h('div', type)
      ),
      clear
    );
  }

  /** How many lines of each text that was loaded belong to it. */
  private counts(linked: Linked, links: Links): string {
    const cluster = this.report && clusterToRead(this.report, links, linked, this.read);
    if (!cluster) {
      return '';
    }
    const counts = STAGES.map(({ stage, unit, counted }) => {
      const code = this.store.get(cluster, stage)?.code;
      const count = code
        ? codeRows(code, this.read, false).filter(row => isLit(row, cluster.plan, linked, links)).length
        : 0;
      return count > 0 && counted ? some(count, unit) : '';
    });
    return joined(', ', ...counts);
  }

  private readonly store: CodeStore;
  private readonly source: SourcePane;
  private readonly panes: readonly CodePane[];
  private readonly pinned = h('div.jl-pin-bar');
  private readonly head = h('div.jl-code-head', { hidden: true });
  private readonly alone = h('div.jl-note.jl-muted', { hidden: true }, NEEDS_KERNEL);
  private readonly frame: HTMLElement;
  private report: Report | null = null;
  private width = 0;
  private live = false;
  private read = '';
  private headShown = '';
  private pin: string | null = null;
}

/** What is pinned, and its type: `f32[60000,10] → f32[60000,10] · 0.6 M elements`. */
function pinnedTexts(linked: Linked, links: Links): [string, string] {
  const numbers = [...linked.lines].map(key => Number(key.slice(key.lastIndexOf(':') + 1)));
  const where = linesText(numbers);
  const ops = [...linked.ops].map(id => links.op(id)).filter(op => op !== undefined);
  const [op] = ops;
  if (linked.kind === 'op' && op) {
    const inputs = op.inputs.map(input => links.op(links.idOf(input, op.plan))).filter(input => input !== undefined);
    const from = [...new Set(inputs.map(input => arrayType(input.dtype, input.shape)))].join(', ');
    const type = arrayType(op.dtype, op.shape);
    return [`${op.written}, ${where}`, joined(' · ', from ? `${from} → ${type}` : type, elements(op.shape))];
  }
  if (linked.kind === 'edge') {
    return [ops.map(({ written }) => written).join(' → '), where];
  }
  if (linked.kind === 'line' || linked.kind === 'code') {
    return [where, [...new Set(ops.map(({ written }) => written))].join(', ')];
  }
  return [idText(links, linked.id), where];
}

function linesText(numbers: readonly number[]): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  return sorted.length ? `${sorted.length > 1 ? 'lines' : 'line'} ${sorted.join(', ')}` : '';
}

function elements(shape: readonly number[]): string {
  const count = shape.reduce((product, extent) => product * extent, 1);
  return count >= 1e6
    ? `${(count / 1e6).toFixed(1)} M elements`
    : count >= 1e4
      ? `${Math.round(count / 1e3)} k elements`
      : shape.length
        ? some(count, 'element')
        : '';
}
