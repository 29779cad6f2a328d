import { CanvasView } from '../../base/canvas';
import { h, icon, on, refill } from '../../base/dom';
import { sentence, unbroken } from '../../base/format';
import type { Request } from '../../report/kernel';
import type { CellState } from '../../report/model';
import { clean, isRecord, record, text } from '../../base/read';
import type { Report } from '../../report/report';
import type { Section, SectionContext, SectionView } from '../../panel/section';
import { readHistory } from '../../report/read-report';
import type { History } from '../../report/report';
import { choicesOf, layoutComparison, samplesNote, timesNote, titleOf } from './layout';
import { readComparison, type Against, type Comparison } from './read';
import { comparisonTable } from './table';

const NEEDS_KERNEL = 'The kernel keeps the runs: comparing needs the one that ran this cell.';
/** Below this width the picture is its table. */
const NARROW = 320;
/** From this width on the times of a table have columns of their own. */
const WIDE = 480;

/** What became faster or slower since an earlier run or a named baseline. */
export class CompareView implements SectionView {
  constructor(
    private readonly section: Section,
    private readonly context: SectionContext
  ) {}

  show(report: Report, width: number, cell: CellState): void {
    if (report.cell.id !== this.report?.cell.id) {
      this.history = null;
      this.comparison = null;
      this.chosen = '';
      this.asked = '';
      this.said = '';
      this.naming = false;
    }
    if (report !== this.report) {
      this.report = report;
      this.history = report.history ?? this.history;
    }
    this.width = width;
    this.live = cell.origin === 'live';
    this.running = cell.running;
    this.section.summary = this.comparison ? summaryOf(this.comparison) : '';
    if (this.section.open) {
      this.renderAll();
      this.compare();
    }
  }

  compareWith(run: number): void {
    this.chosen = `run ${run}`;
    this.compare();
  }

  private renderAll(): void {
    const typing = document.activeElement; // the name's field, which stays but is put into another line
    const kernel = this.live ? this.context.kernel : null;
    const parts: (HTMLElement | string)[] = [];
    const { history, comparison } = this;
    if (history && kernel) {
      parts.push(this.chooser(history));
    } else if (comparison) {
      parts.push(h('b', {}, titleOf(comparison.run, comparison.against)));
    }
    if (!kernel) {
      parts.push(h('div', { class: 'jl-muted' }, NEEDS_KERNEL));
    } else if (!history) {
      parts.push(h('div', { class: 'jl-muted' }, 'No run of this cell is kept. Run it again to compare.'));
    } else if (choicesOf(history).length === 0) {
      parts.push(
        h(
          'div',
          { class: 'jl-muted' },
          'One run so far. Run the cell again, or pin this run as a baseline for later ones.'
        )
      );
    }
    if (this.said) {
      parts.push(h('div', { class: 'jl-note', role: 'status' }, this.said));
    }
    const table = this.section.asTable || this.width < NARROW;
    const canvas = comparison && !table && !comparison.needs ? this.canvas : null;
    if (comparison?.needs) {
      parts.push(h('div', { class: 'jl-needs', role: 'status' }, icon('wait'), h('span', {}, comparison.needs)));
    }
    if (comparison && comparison.rows.length > 0) {
      this.canvas.element.setAttribute('aria-label', this.spoken(comparison));
      parts.push(canvas ? canvas.element : comparisonTable(comparison, this.width < WIDE));
    }
    if (comparison) {
      parts.push(...this.notes(comparison));
    }
    refill(this.section.body, ...parts);
    if (typing instanceof HTMLInputElement && this.section.body.contains(typing)) {
      typing.focus({ preventScroll: true });
    }
    const measure = canvas?.prepare();
    if (canvas && measure && comparison && comparison.rows.length > 0) {
      canvas.paint(layoutComparison(comparison, this.width - 26, measure));
    }
  }

  private chooser(history: History): HTMLElement {
    const choices = choicesOf(history);
    const select = h(
      'select',
      { class: 'jl-select', 'aria-label': 'Compare with' },
      choices.map(({ value, text }) => h('option', { value, selected: value === this.chosen }, text))
    );
    on(select, {
      change: () => {
        this.chosen = select.value;
        this.compare();
      }
    });
    const chosen = choices.find(({ value }) => value === this.choice(history)?.value);
    select.value = chosen?.value ?? '';
    const name = chosen && 'baseline' in chosen.against ? chosen.against.baseline : null;
    return h(
      'div',
      { class: 'jl-compare-head' },
      h('b', {}, `run ${history.run}`),
      choices.length > 0 && [h('span', {}, 'against'), select],
      h('span', { class: 'jl-grow' }),
      name !== null &&
        on(h('button', { type: 'button', class: 'jl-link', title: `Forget the baseline “${clean(name)}”` }, 'Forget'), {
          click: () => {
            this.change({ want: 'drop-baseline', cell: this.report?.cell.id ?? '', name });
          }
        }),
      this.naming ? this.nameForm(history) : this.pinButton()
    );
  }

  private pinButton(): HTMLElement {
    return on(h('button', { type: 'button', class: 'jl-button' }, icon('pin'), 'Pin as baseline'), {
      click: () => {
        this.naming = true;
        this.form = null;
        this.renderAll();
        const name = this.section.body.querySelector('input');
        name?.focus(); // to select its text alone gives it no keyboard
        name?.select();
      }
    });
  }

  /** The same one as long as it names the same run: what is typed outlives whatever else is drawn again. */
  private nameForm(history: History): HTMLElement {
    if (this.form?.run === history.run) {
      return this.form.element;
    }
    const input = h('input', {
      class: 'jl-input',
      'aria-label': 'Name of the baseline',
      value: `run ${history.run}`,
      maxlength: 80
    });
    const form = h('form', { class: 'jl-buttons' }, input, h('button', { class: 'jl-button' }, 'Pin'));
    this.form = { run: history.run, element: form };
    const close = (): void => {
      this.naming = false;
      this.renderAll();
    };
    on(form, {
      submit: event => {
        event.preventDefault();
        const name = input.value.trim();
        this.naming = false;
        if (name) {
          this.change({ want: 'pin-baseline', cell: this.report?.cell.id ?? '', name });
        }
      },
      keydown: event => {
        event.stopPropagation(); // letters are the name's, not the panel's keys
        if (event.key === 'Escape') {
          close();
        }
      }
    });
    return form;
  }

  private notes(comparison: Comparison): HTMLElement[] {
    const { planChanges, retraces } = comparison;
    const plan = planChanges.map(({ text }) =>
      h('div', { class: 'jl-plan-change' }, icon('cluster'), h('span', {}, unbroken(sentence(text))))
    );
    const again =
      retraces && retraces.before !== retraces.after
        ? [h('div', {}, `Retraces: ${retraces.before} → ${retraces.after}.`)]
        : [];
    const samples = [timesNote(this.history, comparison), comparison.note, samplesNote(comparison)].filter(Boolean);
    return [...plan, ...again, ...samples.map(text => h('div', { class: 'jl-note jl-muted' }, unbroken(text)))];
  }

  private choice(history: History): { value: string; against: Against } | undefined {
    const choices = choicesOf(history);
    return choices.find(({ value }) => value === this.chosen) ?? choices[0];
  }

  /** Asked for once a run and choice; the kernel only reads what it kept. */
  private compare(): void {
    const { kernel } = this.context;
    const cell = this.report?.cell.id ?? '';
    const choice = this.history && this.choice(this.history);
    if (!kernel || !this.live || !choice || this.running) {
      return;
    }
    const key = [cell, this.history?.run, choice.value].join('|');
    if (key === this.asked) {
      return;
    }
    this.asked = key;
    kernel.request({ want: 'compare', cell, against: choice.against }).then(
      reply => {
        if (this.asked === key) {
          this.take(reply, readComparison(reply));
        }
      },
      (error: unknown) => {
        if (this.asked === key) {
          this.asked = '';
          this.say(error instanceof Error ? error.message : String(error));
        }
      }
    );
  }

  private take(reply: unknown, comparison: Comparison | null): void {
    this.comparison = comparison ?? this.comparison;
    this.section.summary = this.comparison ? summaryOf(this.comparison) : '';
    this.say(comparison ? '' : refusal(reply, 'The comparison can’t be read.'));
  }

  private change(request: Request): void {
    this.context.kernel?.request(request).then(
      reply => {
        const history = readHistory(record(reply).history);
        this.history = history ?? this.history;
        this.asked = '';
        this.say(history ? '' : refusal(reply, 'The kernel gave no answer.'));
        this.compare();
      },
      (error: unknown) => {
        this.say(error instanceof Error ? error.message : String(error));
      }
    );
  }

  private say(text: string): void {
    this.said = text;
    if (this.section.open) {
      this.renderAll();
    }
  }

  private spoken(comparison: Comparison): string {
    const rows = comparison.rows.map(row => `${row.name} ${row.change?.word ?? row.state}`);
    return `${titleOf(comparison.run, comparison.against)}: ${rows.join(', ')}`;
  }

  private readonly canvas = new CanvasView({ role: 'img' });
  private report: Report | null = null;
  private history: History | null = null;
  private comparison: Comparison | null = null;
  private chosen = '';
  private asked = '';
  private said = '';
  private naming = false;
  private form: { run: number; element: HTMLElement } | null = null;
  private live = false;
  private running = false;
  private width = 0;
}

function summaryOf({ rows, planChanges, needs }: Comparison): string {
  const cell = rows.find(({ kind }) => kind === 'cell');
  return [cell?.change?.word ?? (needs ? 'too few calls to tell' : ''), planChanges.length ? 'plan changed' : '']
    .filter(Boolean)
    .join(' · ');
}

function refusal(reply: unknown, otherwise: string): string {
  return isRecord(reply) && typeof reply.error === 'string' ? text(reply.error) : otherwise;
}
