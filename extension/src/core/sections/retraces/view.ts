import { CanvasView } from '../../base/canvas';
import { refill } from '../../base/dom';
import { addLooks } from '../../base/draw';
import type { Report } from '../../report/report';
import type { Section, SectionContext, SectionView } from '../../panel/section';
import { layoutSpent, ledgerOf, ledgerSummary, spentText, STAGE_LOOKS, type Spent } from './layout';
import { retracesTable } from './table';

/** Why it was captured again, what that cost, and the line that ends it. */
export class RetracesView implements SectionView {
  constructor(
    private readonly section: Section,
    private readonly context: Pick<SectionContext, 'goToLine'> | null = null
  ) {
    addLooks(STAGE_LOOKS);
  }

  show(report: Report, width = this.section.body.clientWidth): void {
    if (report !== this.report) {
      this.report = report;
      const ledger = ledgerOf(report);
      this.section.summary = ledgerSummary(ledger);
      this.bars = [];
      const table = retracesTable(
        ledger,
        ({ file, line }) => this.context?.goToLine(file, line),
        spent => {
          const canvas = new CanvasView({ role: 'img', 'aria-label': `Where the time went: ${spentText(spent)}` });
          this.bars.push([canvas, spent]);
          return canvas;
        }
      );
      refill(this.section.body, table);
    }
    if (this.section.open) {
      for (const [canvas, spent] of this.bars) {
        if (canvas.prepare()) {
          canvas.paint(layoutSpent(spent, width - 26));
        }
      }
    }
  }

  private report: Report | null = null;
  private bars: [CanvasView, readonly Spent[]][] = [];
}
