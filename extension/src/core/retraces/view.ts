import { refill } from '../dom';
import type { Report } from '../report';
import type { Section } from '../section';
import { ledgerOf, ledgerSummary } from './layout';
import { retracesTable } from './table';

/** Why it was captured again, what that cost, and the line that ends it. */
export class RetracesView {
  constructor(private readonly section: Section) {}

  show(report: Report): void {
    const ledger = ledgerOf(report);
    this.section.summary = ledgerSummary(ledger);
    refill(this.section.body, retracesTable(ledger));
  }
}
