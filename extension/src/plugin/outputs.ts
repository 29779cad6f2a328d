import type { Cell } from '@jupyterlab/cells';
import type { CellState } from '../core/report/model';
import type { Report } from '../core/report/report';
import { Signal } from '../core/base/signal';
import type { FollowedNotebook } from './follow';

/** An output below a cell that shows a report. */
export interface ShownReport {
  readonly node: HTMLElement;
  /** What the notebook file has; null for what is no report. */
  readonly kept: Report | null;
  /**
   * Shows a newer report in its stead, without a change of the file; null: what the file has. `isSaved`: no kernel sent that.
   * `isBeside`: a panel shows it too, and here one line is enough.
   */
  follow(report: Report | null, isSaved: boolean, isBeside: boolean): void;
}

/** The outputs that are on the page: their renderer puts them in, the notebooks give them what their kernels say. */
class ShownReports {
  readonly added = new Signal<ShownReport>();

  add(output: ShownReport): void {
    this.outputs.add(output);
    this.added.emit(output);
  }

  delete(output: ShownReport): void {
    this.outputs.delete(output);
  }

  in(node: HTMLElement): ShownReport[] {
    return [...this.outputs].filter(output => node.contains(output.node));
  }

  private readonly outputs = new Set<ShownReport>();
}

/** One of the page: the renderer has no other way to the notebooks. */
export const shownReports = new ShownReports();

/**
 * A cell that ran again alike keeps its output byte for byte, with the times of an earlier run, so that its file stays the
 * same. What is shown below it is the newest run's report.
 */
export class Outputs {
  constructor(private readonly followed: FollowedNotebook) {
    const { model } = followed.link;
    const ends = [
      shownReports.added.connect(output => this.tell(output)),
      model.changed.connect(id => {
        const { widgets } = followed.notebook.content;
        for (const cell of id === null ? widgets : widgets.filter(widget => widget.model.id === id)) {
          this.tellIn(cell);
        }
      }),
      model.shownChanged.connect(() => followed.notebook.content.widgets.forEach(cell => this.tellIn(cell)))
    ];
    followed.notebook.disposed.connect(() => ends.forEach(end => end()));
  }

  private tell(output: ShownReport): void {
    const cell = this.followed.notebook.content.widgets.find(({ node }) => node.contains(output.node));
    if (cell) {
      this.follow(output, cell);
    }
  }

  private tellIn(cell: Cell): void {
    shownReports.in(cell.node).forEach(output => this.follow(output, cell));
  }

  private follow(output: ShownReport, cell: Cell): void {
    const { model } = this.followed.link;
    const state = model.cell(cell.model.id);
    const isSaved = state?.origin === 'saved';
    output.follow(newest(output.kept, state), isSaved, model.isShown && state !== undefined && !isSaved);
  }
}

/**
 * Pure: the report of the newest run that is known, where the output is the cell's own; else null. A large report is cut in one
 * way for the file and in another for the wire, so that the two need not be alike.
 */
export function newest(kept: Report | null, state: CellState | undefined): Report | null {
  const { report, origin } = state ?? {};
  return kept && report && origin !== 'saved' && !report.cell.running && isOfCell(kept, report) ? report : null;
}

function isOfCell({ cell: { id, source, error } }: Report, { cell }: Report): boolean {
  return id !== '' && id === cell.id && error === cell.error && source.join('\n') === cell.source.join('\n');
}
