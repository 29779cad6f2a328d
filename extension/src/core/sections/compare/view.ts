import { CanvasView } from '../../base/canvas';
import { chooser, h, icon, on, refill, type Child } from '../../base/dom';
import { joined, sentence, unbroken } from '../../base/format';
import type { Request } from '../../report/kernel';
import type { CellState } from '../../report/model';
import { clean, record, refusal } from '../../base/read';
import type { History, Report } from '../../report/report';
import type { Section, SectionContext, SectionView } from '../../panel/section';
import { readHistory } from '../../report/read-report';
import { readComparison, type Comparison } from '../../report/answers';
import { RunAgain } from './again';
import { choicesOf, layoutComparison, samplesNote, timesNote, titleOf, type Against } from './layout';
import { comparisonTable } from './table';

const NEEDS_KERNEL = 'The kernel keeps the runs: comparing needs the one that ran this cell.';
const NO_RUN = 'No run of this cell is kept. Run it again to compare.';
const ONE_RUN = 'One run so far. Run the cell again, or pin this run as a baseline for later ones.';
/** Answers that are kept. */
const MOST_ANSWERS = 20;
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
      this.compared = '';
      this.asked = '';
      this.said = '';
      this.failed = false;
      this.naming = false;
      this.again.stop();
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
    const { history, comparison } = this;
    const table = this.section.asTable || this.width < NARROW;
    const rows = comparison?.rows.length ? comparison : null;
    const canvas = rows && !table && !rows.needs ? this.canvas : null;
    const missing = kernel ? (history ? choicesOf(history).length === 0 && ONE_RUN : NO_RUN) : NEEDS_KERNEL;
    this.canvas.element.setAttribute('aria-label', rows ? this.spoken(rows) : '');
    refill(
      this.section.body,
      history && kernel ? this.chooser(history) : comparison && h('b', titleOf(comparison)),
      missing && h('div.jl-muted', missing),
      this.said && h('div.jl-note', { role: 'status' }, this.said),
      this.failed && h('button.jl-button', { onclick: () => this.compare() }, 'Try again'),
      comparison?.needs && h('div.jl-needs', { role: 'status' }, icon('wait'), h('span', comparison.needs.text)),
      kernel && this.more(missing === ONE_RUN ? 1 : (comparison?.needs?.runs ?? 0)),
      rows && (canvas ? canvas.element : comparisonTable(rows, this.width < WIDE)),
      comparison && this.notes(comparison)
    );
    if (typing instanceof HTMLInputElement && this.section.body.contains(typing)) {
      typing.focus({ preventScroll: true });
    }
    const measure = canvas?.prepare();
    if (canvas && measure && rows) {
      canvas.paint(layoutComparison(rows, this.width - 26, measure));
    }
  }

  /** A button that runs the cell as often as is missing, where the host can run one. */
  private more(runs: number): HTMLElement | null {
    const run = this.context.runCell?.(this.report?.cell.id ?? '');
    return run && (runs > 0 || this.again.isGoing) ? this.again.element(runs, run) : null;
  }

  private chooser(history: History): HTMLElement {
    const choices = choicesOf(history);
    const chosen = this.choice(history);
    const choose = (value: string): void => {
      this.chosen = value;
      this.compare();
    };
    const select = chooser('Compare with', choices, chosen?.value ?? '', choose);
    const name = chosen?.against && 'baseline' in chosen.against ? chosen.against.baseline : null;
    return h(
      'div.jl-compare-head',
      h('b', `run ${history.run}`),
      choices.length > 0 && [h('span', 'against'), select],
      h('span.jl-grow'),
      name !== null &&
        h(
          'button.jl-link',
          {
            title: `Forget the baseline “${clean(name)}”`,
            onclick: () => this.change({ want: 'drop-baseline', cell: this.report?.cell.id ?? '', name })
          },
          'Forget'
        ),
      this.naming ? this.nameForm(history) : this.pinButton()
    );
  }

  private pinButton(): HTMLElement {
    return h(
      'button.jl-button',
      {
        onclick: () => {
          this.naming = true;
          this.form = null;
          this.renderAll();
          const name = this.section.body.querySelector('input');
          name?.focus(); // to select its text alone gives it no keyboard
          name?.select();
        }
      },
      icon('pin'),
      'Pin as baseline'
    );
  }

  /** The same one as long as it names the same run: what is typed outlives whatever else is drawn again. */
  private nameForm(history: History): HTMLElement {
    if (this.form?.run === history.run) {
      return this.form.element;
    }
    const input = h('input.jl-input', {
      'aria-label': 'Name of the baseline',
      value: `run ${history.run}`,
      maxlength: 80
    });
    const form = h('form.jl-buttons', input, h('button.jl-button', { type: 'submit' }, 'Pin'));
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

  private notes(comparison: Comparison): Child[] {
    const { planChanges, retraces, note } = comparison;
    return [
      planChanges.map(({ text }) => h('div.jl-plan-change', icon('cluster'), h('span', unbroken(sentence(text))))),
      retraces.before !== retraces.after && h('div', `Retraces: ${retraces.before} → ${retraces.after}.`),
      [timesNote(this.history, comparison), note, samplesNote(comparison)].map(
        text => text && h('div.jl-note.jl-muted', unbroken(text))
      )
    ];
  }

  private choice(history: History): { value: string; against: Against | null } | undefined {
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
    this.failed = false;
    const known = this.answers.get(key);
    if (known || choice.value !== this.compared) {
      this.comparison = known ?? null; // what was asked before is no answer to another question
    }
    this.compared = choice.value;
    this.say(this.comparison ? '' : 'Comparing…');
    kernel.request({ want: 'compare', cell, against: choice.against }).then(
      reply => {
        if (this.asked === key) {
          const comparison = readComparison(reply);
          if (comparison) {
            this.answers.delete(key);
            this.answers.set(key, comparison);
            [...this.answers.keys()].slice(0, -MOST_ANSWERS).forEach(old => this.answers.delete(old));
          }
          this.comparison = comparison ?? this.comparison;
          this.say(comparison ? '' : 'The comparison can’t be read.');
        }
      },
      (error: unknown) => {
        if (this.asked === key) {
          this.asked = '';
          this.failed = true;
          this.say(refusal(error));
        }
      }
    );
  }

  private change(request: Request): void {
    this.context.kernel?.request(request).then(
      reply => {
        const history = readHistory(record(reply).history);
        this.history = history ?? this.history;
        this.asked = '';
        this.say(history ? '' : 'The kernel gave no answer.');
        this.compare();
      },
      (error: unknown) => this.say(refusal(error))
    );
  }

  private say(text: string): void {
    this.said = text;
    this.section.summary = this.comparison ? summaryOf(this.comparison) : '';
    if (this.section.open) {
      this.renderAll();
    }
  }

  private spoken(comparison: Comparison): string {
    const rows = comparison.rows.map(row => `${row.name} ${row.change?.word ?? row.state}`);
    return `${titleOf(comparison)}: ${rows.join(', ')}`;
  }

  private readonly canvas = new CanvasView({ role: 'img' });
  private readonly again = new RunAgain(() => {
    if (this.section.open) {
      this.renderAll();
    }
  });
  private report: Report | null = null;
  private history: History | null = null;
  private comparison: Comparison | null = null;
  private chosen = '';
  /** The choice that `comparison` is of. */
  private compared = '';
  private asked = '';
  private said = '';
  /** The kernel did not answer: it can be asked again. */
  private failed = false;
  /** What was answered, the newest last: of a cell that is shown again there is something at once. */
  private readonly answers = new Map<string, Comparison>();
  private naming = false;
  private form: { run: number; element: HTMLElement } | null = null;
  private live = false;
  private running = false;
  private width = 0;
}

function summaryOf({ rows, planChanges, needs }: Comparison): string {
  const cell = rows.find(({ kind }) => kind === 'cell');
  const word = cell?.change?.word ?? (needs ? 'too few calls to tell' : '');
  return joined(' · ', word, planChanges.length > 0 && 'plan changed');
}
