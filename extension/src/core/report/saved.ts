import type { CellState } from './model';

/** Pure: of which run a report is that the notebook's file has; "" for what came from a kernel. */
export function savedText(cell: CellState | undefined): string {
  const report = cell?.origin === 'saved' ? cell.report : null;
  if (!report) {
    return '';
  }
  const [day = '', time = ''] = report.at.split('T');
  return time === ''
    ? 'Saved report.'
    : `Saved report, of the run at ${time.slice(0, 5)} on ${day}. Later runs gave similar times and were not saved.`;
}
