import { CanvasView } from '../../base/canvas';
import { h, icon, refill, type Child } from '../../base/dom';
import { some } from '../../base/format';
import { isOpen, type Job, type Request } from '../../report/kernel';
import { record, refusal, text } from '../../base/read';
import type { CellState } from '../../report/model';
import type { Report } from '../../report/report';
import type { Section, SectionContext, SectionView } from '../../panel/section';
import { askable, requestOf, type Ask, type Askable } from './ask';
import { askButtons, ICONS, jobCard } from './cards';
import { layoutAnswer } from './layout';
import { readAnswer } from '../../report/answers';
import { planText } from '../../report/links';

const KINDS = new Set(['whatif', 'sweep']);
const NEEDS_KERNEL = 'Measuring needs the kernel that ran this cell. Run the cell again; earlier answers stay.';
const PIN =
  'Pin an operation or a value in Clusters or Code, then split it off, fuse it or run it in NumPy, and see what that costs.';
const EARLIER = 'Of an earlier version of this cell: its lines have changed since.';
/** What will be run, said before it is. */
const WORK = 'Builds both plans and runs each in turn, on copies of the inputs. Nothing in the notebook changes.';

interface Card {
  job: Job;
  asTable: boolean;
  isEarlier: boolean;
  bars: CanvasView | null;
  element: HTMLElement;
}

/** Change the plan and measure: what is asked, what waits, and what was found, newest first. */
export class WhatIfView implements SectionView {
  constructor(
    private readonly section: Section,
    private readonly context: SectionContext
  ) {}

  show(report: Report, width: number, cell: CellState): void {
    if (report.cell.id !== this.report?.cell.id) {
      this.proposed = null;
      this.say('');
      this.endWaits();
    }
    this.report = report;
    this.width = width;
    this.live = cell.origin === 'live';
    const known = this.answers.get(report.cell.id) ?? new Map<string, Job>();
    this.answers.set(report.cell.id, known);
    for (const job of this.context.kernel?.jobs.of(report.cell.id) ?? []) {
      if (KINDS.has(job.kind)) {
        known.set(job.id, job);
        this.askedOf.set(job.id, this.askedOf.get(job.id) || writtenAs(report));
      }
    }
    this.renderAll();
  }

  render(): void {
    if (this.section.open && this.report && this.context.selection.pin !== this.asked) {
      this.renderAsk();
    }
  }

  dispose(): void {
    this.endWaits();
  }

  private endWaits(): void {
    for (const waited of this.waits.values()) {
      waited.end();
    }
    this.waits.clear();
  }

  private renderAll(): void {
    const jobs = this.jobs();
    this.section.summary = summaryOf(jobs);
    if (!this.section.open || !this.report) {
      return;
    }
    const { body } = this.section;
    if (this.list.parentElement !== body) {
      body.replaceChildren(this.bar, this.status, this.list);
    }
    this.renderAsk();
    this.renderCards(jobs);
  }

  private jobs(): Job[] {
    const known = this.answers.get(this.report?.cell.id ?? '');
    return [...(known?.values() ?? [])]
      .filter(({ state, error, result }) => state !== 'cancelled' || error !== null || result !== null)
      .reverse();
  }

  private renderAsk(): void {
    const { report, context } = this;
    const { links, pin } = context.selection;
    if (!report || !links) {
      return;
    }
    this.asked = pin;
    const kernel = this.live ? context.kernel : null;
    const about = askable(report, links, pin);
    const plan = this.sweepPlan(about?.asks[0]?.plan);
    refill(
      this.bar,
      this.proposed
        ? this.confirmation(this.proposed)
        : about
          ? this.about(about, kernel !== null)
          : h('div.jl-muted', PIN),
      plan &&
        h(
          'div.jl-buttons',
          h(
            'button.jl-button',
            {
              disabled: kernel === null,
              title: 'Splits each fused pair of operations once',
              onclick: () => this.send({ want: 'sweep', cell: report.cell.id, plan })
            },
            icon('cut'),
            this.sweepLabel(plan)
          ),
          h('span.jl-note.jl-muted', kernel ? SWEEP : NEEDS_KERNEL)
        )
    );
  }

  /** What is pinned, and what can be asked of it. */
  private about({ title, facts, asks, hint }: Askable, enabled: boolean): Child[] {
    return [
      h('div.jl-card-head', icon('pin'), h('span.jl-grow', h('b', title), h('span.jl-muted', ` ${facts}`))),
      asks.length ? askButtons(asks, enabled, ask => this.propose(ask)) : h('div.jl-muted', hint)
    ];
  }

  /** With the setting, says what it will run and waits for a yes. */
  propose(ask: Ask): void {
    if (this.context.confirms) {
      this.proposed = ask;
      this.renderAsk();
      this.bar.querySelector('button')?.focus();
    } else {
      this.ask(ask);
    }
  }

  private confirmation(ask: Ask): HTMLElement {
    const close = (): void => {
      this.proposed = null;
      this.renderAsk();
    };
    const measure = (): void => {
      close();
      this.ask(ask);
    };
    return h(
      'div.jl-card',
      { role: 'group', 'aria-label': ask.title },
      h('div.jl-card-head', icon(ICONS[ask.kind]), h('b.jl-grow', ask.title)),
      h('div', WORK),
      h(
        'div.jl-buttons',
        h('button.jl-button', { onclick: measure }, 'Measure'),
        h('button.jl-button', { onclick: close }, 'Don’t')
      )
    );
  }

  private ask(ask: Ask): void {
    if (this.report) {
      this.send(requestOf(ask, this.report.cell.id));
    }
  }

  private send(request: Request): void {
    const { kernel } = this.context;
    if (!kernel || !this.live) {
      this.say(NEEDS_KERNEL);
      return;
    }
    this.say('Asked.');
    const waited = new Wait(this.section.element);
    kernel.request(request).then(
      reply => {
        this.say('');
        this.waits.set(text(record(reply).job), waited);
        this.renderAll(); // the answer may have come before
      },
      (error: unknown) => {
        waited.end();
        this.say(refusal(error));
      }
    );
  }

  private say(text: string): void {
    this.status.textContent = text;
    this.status.hidden = text === '';
  }

  /** Of the pinned thing, else of the plan that takes most time; none where no kernel has two operations to split. */
  private sweepPlan(plan: string | undefined): string | null {
    const { report } = this;
    const { clusters = [], kernels = [] } = report ?? {};
    const known = new Set(kernels.map(({ cluster }) => cluster)); // of a report that was cut not all
    const fused = new Set(kernels.filter(({ ops }) => ops.length > 1).map(({ cluster }) => cluster));
    const inside = clusters.filter(({ name, ops }) => ops.length > 1 && (fused.has(name) || !known.has(name)));
    const slow = [...inside].sort((a, b) => (b.seconds ?? 0) - (a.seconds ?? 0))[0];
    return inside.length ? (plan ?? slow?.plan ?? null) : null;
  }

  /** With its plan where the report has several. */
  private sweepLabel(plan: string): string {
    const different = (this.report?.plans ?? []).filter(({ name, like }) => like === '' || like === name);
    return !this.report || different.length < 2 ? 'Sweep' : `Sweep ${planText(this.report, plan)}`;
  }

  private renderCards(jobs: readonly Job[]): void {
    const { asTable } = this.section;
    const before = this.cards;
    const now = this.report ? writtenAs(this.report) : '';
    this.cards = new Map();
    for (const job of jobs) {
      const old = before.get(job.id);
      const asked = this.askedOf.get(job.id) ?? '';
      const isEarlier = asked !== '' && now !== '' && asked !== now;
      const same = old?.job === job && old.asTable === asTable && old.isEarlier === isEarlier;
      const card = same ? old : this.card(job, asTable, isEarlier);
      this.cards.set(job.id, card);
    }
    const elements = [...this.cards.values()].map(({ element }) => element);
    if (elements.length !== this.list.children.length || elements.some((one, at) => one !== this.list.children[at])) {
      refill(this.list, ...elements);
    }
    for (const { job, bars } of this.cards.values()) {
      const answer = bars ? readAnswer(job.result) : null;
      const measure = bars?.prepare();
      if (bars && measure && answer?.before && answer.after) {
        bars.paint(layoutAnswer(answer.before, answer.after, this.width - 26 - 22, measure));
      }
    }
    for (const { job, element } of this.cards.values()) {
      const waited = isOpen(job) ? undefined : this.waits.get(job.id);
      if (waited) {
        this.waits.delete(job.id);
        waited.end();
        if (!waited.hasMoved) {
          element.scrollIntoView({ block: 'nearest' });
        }
      }
    }
  }

  private card(job: Job, asTable: boolean, isEarlier: boolean): Card {
    const answer = job.state === 'done' && job.kind === 'whatif' && !asTable ? readAnswer(job.result) : null;
    const bars =
      answer?.before && answer.after
        ? new CanvasView({ role: 'img', 'aria-label': `${answer.title}: ${answer.change?.word ?? ''}` })
        : null;
    const ask = (want: 'cancel' | 'continue') => (): void =>
      void this.context.kernel?.request({ want, job: job.id }).catch((error: unknown) => this.say(refusal(error)));
    const actions = this.context.kernel ? { cancel: ask('cancel'), goOn: ask('continue') } : null;
    const element = jobCard(job, bars, actions);
    if (isEarlier) {
      element.querySelector('.jl-card-head')?.after(h('div.jl-note', EARLIER));
    }
    return { job, asTable, isEarlier, bars, element };
  }

  private readonly bar = h('div.jl-ask', { role: 'group', 'aria-label': 'Ask what if' });
  private readonly status = h('div.jl-note.jl-said', { role: 'status', hidden: true });
  private readonly list = h('div.jl-cards');
  /** Answers that were asked for here, by their jobs. */
  private readonly waits = new Map<string, Wait>();
  private readonly answers = new Map<string, Map<string, Job>>();
  /** The text that the cell had when a job was first heard of. */
  private readonly askedOf = new Map<string, string>();
  private cards = new Map<string, Card>();
  private report: Report | null = null;
  private proposed: Ask | null = null;
  private asked: string | null = null;
  private live = false;
  private width = 0;
}

/** As SWEEP_SECONDS of jitlab/api/whatif/whatif.py. */
const SWEEP =
  'Splits each fused pair of operations once and ranks them by the time lost. Builds and measures each: up to 20 s.';

/** Notes whether somebody who asked has gone on to something else in the panel: then the answer does not take them away. */
class Wait {
  hasMoved = false;

  constructor(private readonly section: HTMLElement) {
    for (const kind of MOVES) {
      document.addEventListener(kind, this.moved, true);
    }
  }

  end(): void {
    for (const kind of MOVES) {
      document.removeEventListener(kind, this.moved, true);
    }
  }

  private readonly moved = ({ target }: Event): void => {
    this.hasMoved ||= target instanceof Node && (this.section.closest('.jl-panel')?.contains(target) ?? false);
  };
}

const MOVES = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;

/** The lines of a report's cell; "" where it has none. */
export function writtenAs({ cell, sources }: Report): string {
  return sources
    .filter(source => source.cell === cell.id)
    .map(({ lines }) => lines.join('\n'))
    .join('\n');
}

function summaryOf(jobs: readonly Job[]): string {
  const waiting = jobs.filter(isOpen);
  const done = jobs.filter(({ state }) => state === 'done');
  const [first] = waiting;
  return first
    ? `${first.state}${waiting.length > 1 ? `, and ${waiting.length - 1} more` : ''}`
    : done.length
      ? `${some(done.length, 'answer')}, measured`
      : '';
}
