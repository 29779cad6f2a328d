import type { CellState } from './model';

/** Pure: of which run a report is that the notebook's file has; "" for what came from a kernel. */
export function savedText(cell: CellState | undefined): string {
  const report = cell?.origin === 'saved' ? cell.report : null;
  if (!report) {
    return '';
  }
  const [day = '', time = ''] = report.at.split('T');
  return time === ''
    ? 'Saved with the notebook.'
    : `Saved with the notebook: of the run at ${time.slice(0, 8)} on ${day}; later runs that were alike are not kept here.`;
}
