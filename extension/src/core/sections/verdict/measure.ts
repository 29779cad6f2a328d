import { refusal } from '../../base/read';
import { h } from '../../base/dom';
import { isOpen, type KernelAccess } from '../../report/kernel';
import type { Report } from '../../report/report';

/** Nothing is measured unasked: a button says what it will run. */
export class Measure {
  /** The kernel that can measure, while there is one. */
  constructor(private readonly kernel: () => KernelAccess | null) {}

  /** Null where nothing is left to measure, or no kernel is there to do it. */
  show(report: Report): HTMLElement | null {
    const run = `${report.cell.id} ${report.cell.title}`;
    if (run !== this.run) {
      this.run = run;
      this.refused = '';
    }
    const kernel = this.kernel();
    const isCompared = isMeasured(report);
    if (!kernel || (isCompared && report.numerics.length > 0)) {
      return null;
    }
    const { said } = this;
    said.textContent = this.refused || whatIsUnknown(report);
    const button = (label: string, want: 'measure' | 'check', title: string): HTMLElement => {
      const element = h(
        'button.jl-button',
        {
          title,
          onclick: () => {
            kernel.request({ want, cell: report.cell.id }).catch((error: unknown) => {
              if (run === this.run) {
                said.textContent = this.refused = refusal(error);
              }
            });
          }
        },
        label
      );
      element.disabled = kernel.jobs.of(report.cell.id).some(job => job.kind === want && isOpen(job));
      return element;
    };
    return h(
      'div.jl-measure.jl-note',
      said,
      !isCompared && button('Measure', 'measure', 'Times the cell by NumPy and compiled, in turns'),
      report.numerics.length === 0 &&
        button('Check', 'check', 'Compares each cluster’s numbers with NumPy’s, and finds who is out of bounds')
    );
  }

  /** One element for good: reports that come while the kernel is asked draw all around it anew. */
  private readonly said = h('span.jl-grow', { role: 'status' });
  /** Of which run the kernel was asked. */
  private run = '';
  /** Why the kernel would not measure; it stays as long as that run is the newest. */
  private refused = '';
}

/** Pure: how NumPy is beside it is known, of this run or of an earlier one. */
export function isMeasured({ verdict }: Report): boolean {
  return verdict.numpySeconds !== null || verdict.speed !== null;
}

/** What a button beside it can find out. */
function whatIsUnknown(report: Report): string {
  const isCompared = isMeasured(report);
  return report.numerics.length > 0
    ? 'Not compared with NumPy yet. Measure runs both sides several times, on copies.'
    : isCompared
      ? 'Results not checked against NumPy yet. Check runs the cell once more, on copies.'
      : 'Not compared with NumPy yet. Measure times both, Check compares the results; on copies.';
}
