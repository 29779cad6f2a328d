import { CanvasView } from '../../base/canvas';
import { flowOf } from '../clusters/flow';
import { copyLine, h, icon, refill, type IconName } from '../../base/dom';
import { bytes, capital, duration, sentence, some, spread } from '../../base/format';
import type { Report } from '../../report/report';
import type { MoreOfVerdict } from './more';
import { layoutBars, layoutStrip } from './layout';
import { isPythons, pythonRows } from './python';

const CLUSTER = 'Cluster: operations compiled into one function';
const KERNEL = 'Kernel: operations in one loop over memory';
const HOST = 'Operations NumPy runs, one by one';
const RETRACE = 'Traced again because an input changed';
const STATEMENT = 'Statements that Python ran';

/** The first thing a user reads: what compiled, how much faster, and what to do next. */
export class VerdictView {
  readonly element = h('section.jl-verdict', { 'aria-label': 'Verdict' });

  /** `jump` opens the section that a fact speaks of; `of` is what it speaks of there. */
  constructor(
    private readonly jump: (section: string, of?: string) => void,
    /** Null where there is too little room for a script that has it. */
    private readonly more: MoreOfVerdict | null = null,
    private readonly pin: (id: string) => void = () => undefined
  ) {}

  show(report: Report, width: number): void {
    const { verdict } = report;
    if (report !== this.report) {
      this.report = report;
      this.unfolded = report.numerics.some(({ ok }) => !ok);
    }
    const flow = flowOf(report);
    const { waited, speed } = verdict;
    const time = verdict.seconds === null ? '' : spread(verdict.seconds, verdict.repeated?.deviation ?? null);
    const loop = verdict.repeated?.mean == null ? '' : `${time} a loop`;
    const times = speed?.text ?? (waited ? loop : time);
    const strip = new CanvasView({ role: 'img', 'aria-label': verdict.lead });
    const numpy = verdict.numpySeconds === null ? '' : `, NumPy ${duration(verdict.numpySeconds)}`;
    const bars = new CanvasView({ role: 'img', 'aria-label': `jitlab ${time}${numpy}` });
    refill(
      this.element,
      h(
        'div.jl-lead',
        h('span', waited?.text ?? verdict.lead),
        h('span.jl-times', times, speed?.note && h('span.jl-note.jl-muted', `, ${speed.note}`))
      ),
      verdict.settled && h('p.jl-compiled', verdict.settled.text),
      waited && h('p.jl-compiled', verdict.lead),
      waited?.pays && h('p.jl-pays', capital(waited.pays.text)),
      this.facts(report),
      this.more?.notes(report),
      strip.element,
      verdict.seconds !== null && bars.element,
      ofPython(report),
      this.more?.checked(report, this.unfolded, open => {
        this.unfolded = open;
      }),
      this.notMeasured(report),
      this.next(report)
    );
    const room = width - 24;
    const measure = strip.prepare();
    if (measure && flow.parts.length) {
      strip.paint(layoutStrip(flow, room, measure, !(verdict.compiled + verdict.host)));
    } else {
      strip.element.hidden = true;
    }
    const measureBars = bars.prepare();
    if (measureBars && verdict.seconds !== null) {
      bars.paint(layoutBars(flow, verdict.seconds, verdict.numpySeconds, room, measureBars, time));
    }
  }

  private notMeasured(report: Report): HTMLElement[] {
    const { seconds, numpySeconds, speed, compiled } = report.verdict;
    if (seconds === null || compiled === 0 || report.cell.running) {
      return [];
    }
    const measure = this.more?.measure(report);
    if (measure) {
      return [measure];
    }
    return numpySeconds === null && speed === null && report.cell.source[0]?.startsWith('%%jit')
      ? [
          h(
            'p.jl-note.jl-muted',
            'Not compared with NumPy. ',
            h('code', '%%jit --compare'),
            ' measures both, on copies.'
          )
        ]
      : [];
  }

  private facts(report: Report): HTMLElement {
    const { verdict } = report;
    const fact = (name: IconName, text: string, section: string, title: string, kind = ''): HTMLElement =>
      h('button', { class: `jl-fact ${kind}`, title, onclick: () => this.jump(section, name) }, icon(name), text);
    const none = (text: string, title: string): HTMLElement => h('span', { title }, icon('ok'), ' ', text);
    const moved = movedText(report);
    return h(
      'div.jl-facts',
      verdict.clusters > 0 && fact('cluster', some(verdict.clusters, 'cluster'), 'clusters', CLUSTER),
      verdict.kernels > 0 && fact('kernel', some(verdict.kernels, 'kernel'), 'clusters', KERNEL),
      verdict.host > 0
        ? fact('host', `${verdict.host} run by NumPy`, 'clusters', HOST, 'jl-is-host')
        : !/NumPy/.test(verdict.lead) && none('none run by NumPy', HOST),
      verdict.retraces > 0
        ? fact('retrace', some(verdict.retraces, 'retrace'), 'retraces', RETRACE, 'jl-is-retrace')
        : none('no retraces', RETRACE),
      verdict.statements > 0 &&
        fact(isPythons(report) ? 'host' : 'no', pythonText(report), 'clusters', STATEMENT, 'jl-is-host'),
      verdict.loops > 0 && h('span.jl-muted', `${some(verdict.loops, 'loop')} run iteration by iteration`),
      this.more?.calls(report),
      moved && (this.more?.moved(moved, this.jump) ?? h('span.jl-muted', moved)),
      this.more?.slowest(report, this.pin)
    );
  }

  private next(report: Report): HTMLElement[] {
    const { next, then, bound } = report.verdict;
    if (!next) {
      return bound ? [h('p.jl-bound', bound.code === 'done' && icon('ok'), bound.text)] : [];
    }
    const kind = next.section === 'retraces' ? 'retrace' : 'host';
    const isLeft = next.advice === 'host' || next.advice === 'host_share'; // to NumPy: nothing that one can do
    return [
      h(
        'div',
        {
          class: `jl-next jl-is-${kind}`,
          role: 'note',
          'aria-label': isLeft ? 'Left to NumPy' : 'Do next'
        },
        h('h4', icon(kind), h('span', !isLeft && h('span.jl-muted', 'Do next: '), next.text)),
        next.why && h('div', sentence(next.why)),
        next.code && copyLine(next.code),
        then && h('button.jl-link.jl-inline', { onclick: () => this.jump(then.section) }, `Then: ${then.text}`)
      )
    ];
  }

  private report: Report | null = null;
  /** Whether the list of checked outputs is open. */
  private unfolded = false;
}

/** "2 statements run by Python, 1.2 ms" */
function pythonText({ verdict: { statements, statementSeconds: seconds } }: Report): string {
  return `${some(statements, 'statement')} run by Python${seconds === null ? '' : `, ${duration(seconds)}`}`;
}

/** "about 294 MB of memory traffic (NumPy 511 MB)", by the cost model; "" where nobody knows. */
function movedText({ verdict: { bytesMoved: all, bytesSaved: saved } }: Report): string {
  return all ? `about ${bytes(all)} of memory traffic${saved ? ` (NumPy ${bytes(all + saved)})` : ''}` : '';
}

/** What Python did, each with its line and the reason. */
function ofPython(report: Report): HTMLElement[] {
  const { rows, more } = pythonRows(report);
  if (rows.length === 0) {
    return [];
  }
  return [
    h(
      'ul.jl-python.jl-note',
      { 'aria-label': 'What Python ran' },
      rows.map(({ what, where, why }) =>
        h('li', h('code', what), ' ', h('span.jl-muted', where), why && h('div', why))
      ),
      more && h('li.jl-muted', more)
    )
  ];
}
