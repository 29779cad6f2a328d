import type { Cell } from '@jupyterlab/cells';
import { type PanelLayout, Widget } from '@lumino/widgets';
import { badgeText, fillBadge } from '../core/panel/badge';
import { h } from '../core/base/dom';
import type { FollowedNotebook } from './follow';
import type { Notebooks } from './notebooks';

/** One line below a cell's editor. A widget of the cell's own layout: it is detached, attached and disposed with the cell. */
class Badge extends Widget {
  constructor(open: () => void) {
    super();
    this.addClass('jl-badge-line');
    this.button = h('button.jl-badge', { onclick: open });
    this.node.append(h('div.jl', this.button));
  }

  readonly button: HTMLButtonElement;
  shown = '';
}

/** Keeps the badges of one notebook: a cell that has a report has one, as long as badges are wanted. */
export class Badges {
  constructor(
    private readonly followed: FollowedNotebook,
    private readonly notebooks: Notebooks,
    private readonly open: (cell: string) => void
  ) {
    followed.cellChanged.connect(cell => this.show(cell));
    followed.link.jobs.changed.connect(id => {
      const cell = followed.notebook.content.widgets.find(({ model }) => model.id === id);
      if (cell) {
        this.show(cell);
      }
    });
    notebooks.settingsChanged.connect(() => this.showAll());
    this.showAll();
  }

  showAll(): void {
    for (const cell of this.followed.notebook.content.widgets) {
      this.show(cell);
    }
  }

  private show(cell: Cell): void {
    if (cell.isDisposed || this.followed.notebook.isDisposed) {
      return;
    }
    const { id, type } = cell.model;
    const state = this.followed.link.model.cell(id);
    const report = this.notebooks.settings.badges && type === 'code' ? state?.report : null;
    cell.toggleClass('jl-not-live', report !== null && report !== undefined && state?.origin !== 'live');
    let badge = this.badges.get(cell);
    const job = this.followed.underway();
    const underway = this.notebooks.settings.badges && job?.cell === id ? job.title : '';
    if (!report && !underway) {
      badge?.dispose();
      this.badges.delete(cell);
      return;
    }
    if (cell.isPlaceholder()) {
      // Its layout is made when it comes into view.
      void cell.ready.then(() => this.show(cell));
      return;
    }
    if (!badge || badge.isDisposed) {
      badge = new Badge(() => this.open(id));
      this.badges.set(cell, badge);
      const layout = cell.layout as PanelLayout;
      const input = layout.widgets.findIndex(widget => widget.hasClass('jp-Cell-inputWrapper'));
      layout.insertWidget(input + 1, badge);
    }
    if (!report || underway) {
      badge.shown = underway;
      badge.button.textContent = underway;
      return;
    }
    const note =
      state?.origin === 'previous'
        ? 'from before the restart'
        : state?.origin === 'saved'
          ? 'from the saved notebook'
          : this.followed.editsOf(id).length > 0
            ? 'of an older version of this cell'
            : state?.running
              ? 'running'
              : '';
    const shown = `${report.cell.title}|${badgeText(report)}|${note}|${report.clusters[0]?.color ?? ''}`;
    if (badge.shown !== shown) {
      badge.shown = shown;
      fillBadge(badge.button, report, note);
    }
  }

  private readonly badges = new WeakMap<Cell, Badge>();
}
