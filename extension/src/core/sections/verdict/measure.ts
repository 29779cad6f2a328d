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
    if (report !== this.report) {
      this.report = report;
      this.refused = '';
    }
    const kernel = this.kernel();
    const { numpySeconds } = report.verdict;
    if (!kernel || (numpySeconds !== null && report.numerics.length > 0)) {
      return null;
    }
    const said = h('span.jl-grow', { role: 'status' }, this.refused || whatIsUnknown(report));
    const button = (label: string, want: 'measure' | 'check', title: string): HTMLElement => {
      const element = h(
        'button.jl-button',
        {
          title,
          onclick: () => {
            kernel.request({ want, cell: report.cell.id }).catch((error: unknown) => {
              this.refused = refusal(error);
              said.textContent = this.refused;
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
      numpySeconds === null && button('Measure', 'measure', 'Times NumPy on the cell’s operations, one by one'),
      report.numerics.length === 0 &&
        button('Check', 'check', 'Compares each cluster’s numbers with NumPy’s, and finds who is out of bounds')
    );
  }

  private report: Report | null = null;
  /** Why the kernel would not measure. */
  private refused = '';
}

/** What a button beside it can find out; each runs NumPy on the cell's operations once. */
function whatIsUnknown({ verdict, numerics }: Report): string {
  const [slow, near] = ['NumPy is not measured', 'the numbers are not checked'];
  const parts = [verdict.numpySeconds === null ? slow : '', numerics.length === 0 ? near : ''].filter(Boolean);
  const said = parts.join(', and ').replace(/^t/, 'T');
  const each = parts.length > 1 ? 'Either' : 'It';
  return `${said}. ${each} needs one run of the cell’s operations, on copies of its inputs.`;
}
