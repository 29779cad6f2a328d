import { h } from '../../base/dom';
import { duration } from '../../base/format';
import { clusterMark } from '../../base/shapes';
import { Tabs } from '../../base/tabs';
import type { Absorbed } from '../../report/answers';
import type { CodeStage } from '../../report/kernel';
import { colorsOf } from '../../report/colors';
import type { Cluster } from '../../report/report';
import type { SectionContext } from '../../panel/section';
import { CodeList } from './list';
import type { CodeStore } from './store';
import { codeRows, isLit, type CodeRow } from './rows';
import { absorbedText, stageIn, STAGES } from './stages';
import { painted, selvage } from './source';
import { languageOf, tokens } from './tokens';

const MOST_ABSORBED = 100;
export const NEEDS_KERNEL =
  'Program, LLVM and assembly come from the kernel that ran the cell. Run the cell to read them.';

/** One of the kernel's texts of a cluster, by tabs: each line says at its right edge which lines of the source it came from. */
export class CodePane {
  readonly element: HTMLElement;

  constructor(
    private readonly context: SectionContext,
    private readonly store: CodeStore,
    public stage: CodeStage,
    /** Another stage was chosen. */
    private readonly chosen: () => void
  ) {
    this.list = new CodeList({
      label: 'Generated code',
      fill: (row, index) => this.fillRow(row, index),
      idOf: index => this.rows[index]?.id ?? '',
      isLit: index => this.isLit(index),
      point: id => this.context.selection.hover(id),
      pin: index => {
        const row = this.rows[index];
        if (row && row.code === null) {
          this.unfolded = true;
          this.fill();
        } else if (row) {
          this.context.selection.togglePin(row.id);
        }
      },
      go: index => {
        const position = this.rows[index]?.code?.at[0];
        if (position) {
          this.context.goToLine(position.file, position.line);
        }
      }
    });
    this.element = h('div.jl-pane', this.tabs.element, this.message, this.list.element, this.absorbed, this.foot);
  }

  show(cluster: Cluster | null, clusterId: string, stages: readonly CodeStage[], live: boolean): void {
    if (clusterId !== this.clusterId) {
      this.unfolded = false;
    }
    this.cluster = cluster;
    this.clusterId = clusterId;
    this.stages = stages;
    this.live = live;
    this.stage = stageIn(stages, this.stage);
    this.fillTabs();
    this.fill();
  }

  /** Only what is pointed at has changed; what is pinned comes into sight. */
  relight(): void {
    this.list.relight();
    const { pin } = this.context.selection;
    if (pin !== this.pinned) {
      this.pinned = pin;
      this.reveal();
    }
  }

  private fillTabs(): void {
    const known = STAGES.filter(({ stage }) => this.stages.includes(stage));
    this.tabs.show(
      known.map(({ stage, name }) => [stage, name]),
      this.stage
    );
  }

  private choose(stage: CodeStage): void {
    this.stage = stage;
    this.unfolded = false;
    this.fillTabs();
    this.fill();
    this.chosen();
  }

  private fill(): void {
    const entry = this.cluster ? this.store.get(this.cluster, this.stage) : undefined;
    const { code = null } = entry ?? {};
    const name = `${STAGES.find(({ stage }) => stage === this.stage)?.name ?? ''} of ${this.clusterId}`;
    this.list.element.setAttribute('aria-label', name);
    const shown = [code, this.clusterId, this.unfolded] as const;
    this.list.element.hidden = code === null; // before anything is scrolled to: what is hidden has no height
    if (shown.some((value, index) => value !== this.shown[index])) {
      this.shown = shown;
      this.rows = code ? codeRows(code, this.clusterId, this.unfolded) : [];
      this.list.digits = String(this.rows.reduce((most, { number }) => Math.max(most, number), 0)).length;
      this.list.count = this.rows.length;
      this.fillAbsorbed(code?.absorbed ?? []);
      this.reveal();
    }
    const message = code ? '' : this.state(entry?.error ?? null, name);
    this.message.textContent = message;
    this.message.hidden = message === '';
    this.foot.textContent = code?.note ?? '';
    this.foot.hidden = this.foot.textContent === '';
  }

  /** Operations without a line of their own are told below the list, folded. */
  private fillAbsorbed(absorbed: readonly Absorbed[]): void {
    this.absorbed.hidden = absorbed.length === 0;
    this.absorbed.replaceChildren(
      h('summary', absorbedText(absorbed)),
      h(
        'ul.jl-told',
        { 'aria-label': 'Operations without a line of their own' },
        absorbed.slice(0, MOST_ABSORBED).map(({ text }) => h('li', text)),
        absorbed.length > MOST_ABSORBED && h('li', `and ${absorbed.length - MOST_ABSORBED} more`)
      )
    );
  }

  private state(error: string | null, name: string): string {
    if (!this.cluster) {
      return 'Nothing was compiled.';
    }
    if (error !== null) {
      return error;
    }
    if (!this.live || !this.context.kernel) {
      return NEEDS_KERNEL;
    }
    const busy = this.store.waitedSeconds(this.cluster, this.stage);
    return `${name} is asked for and comes when the kernel answers${busy > 2 ? `; asked ${duration(busy)} ago` : ''}.`;
  }

  private reveal(): void {
    const { held, links } = this.context.selection;
    if (held && links) {
      const plan = this.cluster?.plan ?? '';
      const at = this.rows.findIndex(row => isLit(row, plan, held, links));
      if (at >= 0) {
        this.list.reveal(at);
      }
    }
  }

  private isLit(index: number): boolean {
    const { lit, links } = this.context.selection;
    const row = this.rows[index];
    return row !== undefined && lit !== null && links !== null && isLit(row, this.cluster?.plan ?? '', lit, links);
  }

  private fillRow(element: HTMLElement, index: number): void {
    const row = this.rows[index];
    if (!row?.code) {
      element.classList.add('jl-folded');
      element.title = 'Show them';
      element.append(h('span.jl-no', '⋯'), selvage([]), h('span.jl-tx', row?.text));
      return;
    }
    const plain = row.code.at.length === 0;
    element.classList.toggle('jl-plain', plain);
    element.dataset.id = row.id;
    element.title = row.text.trim(); // its end, a type, may have faded out
    element.append(
      h('span.jl-no', String(row.number)),
      selvage(plain || !this.cluster ? [] : [clusterMark(this.colorOf(this.cluster, row.code.kernel))]),
      h('span.jl-tx', painted(tokens(row.text, languageOf(this.stage)), [], null)),
      row.from ? h('span.jl-origin', { title: `From line ${row.from}` }, `← ${row.from}`) : ''
    );
  }

  private colorOf({ name, color }: Cluster, kernel: string | null): number {
    const { links } = this.context.selection;
    return (links && colorsOf(links.report)(name, kernel)) ?? color;
  }

  private readonly tabs = new Tabs(h('div.jl-stages', { role: 'tablist', 'aria-label': 'Stage' }), stage =>
    this.choose(stage as CodeStage)
  );
  private readonly message = h('div.jl-muted.jl-wait', { role: 'status', hidden: true });
  private readonly absorbed = h('details.jl-details.jl-note.jl-muted', { hidden: true });
  private readonly foot = h('div.jl-note.jl-muted', { hidden: true });
  private readonly list: CodeList;
  private rows: readonly CodeRow[] = [];
  private cluster: Cluster | null = null;
  private clusterId = '';
  private stages: readonly CodeStage[] = [];
  private shown: readonly unknown[] = [];
  private unfolded = false;
  private live = false;
  private pinned: string | null = null;
}
