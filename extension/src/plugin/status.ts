import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { badgeText } from '../core/panel/badge';
import { h } from '../core/base/dom';
import type { FollowedNotebook } from './follow';
import type { Notebooks } from './notebooks';

/** One item of the status bar: what runs, else what the shown cell's report says. Hidden where no kernel has jitlab. */
export class StatusItem extends Widget {
  readonly wantedChanged = new Signal<this, void>(this);
  isWanted = false;

  constructor(
    private readonly notebooks: Notebooks,
    open: () => void
  ) {
    super();
    this.addClass('jl-status-item');
    this.button = h('button', { title: 'Show the jitlab panel', onclick: open });
    this.node.append(this.button);
    const listen = (one: FollowedNotebook): void => {
      one.link.model.changed.connect(() => this.refresh());
      one.link.jobs.changed.connect(() => this.refresh());
    };
    notebooks.each(listen);
    notebooks.moved.connect(() => this.refresh());
    this.refresh();
  }

  private refresh(): void {
    const one = this.notebooks.current;
    const model = one?.link.model;
    const id = one?.shownCell() ?? null;
    const report = id === null ? null : model?.cell(id)?.report;
    const underway = one?.underway();
    const text = !model?.loaded
      ? ''
      : underway
        ? `jitlab: ${underway.title.charAt(0).toLowerCase()}${underway.title.slice(1)}`
        : model.busy(null)
          ? `jitlab: ${model.busy(null)?.title ?? ''} runs`
          : report
            ? `jitlab: ${report.cell.title} ${badgeText(report).split(' · ')[0] ?? ''}`
            : 'jitlab';
    if (this.button.textContent !== text) {
      this.button.textContent = text;
    }
    if (this.isWanted !== (text !== '')) {
      this.isWanted = text !== '';
      this.wantedChanged.emit();
    }
  }

  private readonly button: HTMLButtonElement;
}
