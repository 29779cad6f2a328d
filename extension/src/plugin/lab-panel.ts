import type { INotebookCellExecutor } from '@jupyterlab/notebook';
import type { Message } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { PanelView } from '../core/panel/panel';
import type { PanelActions } from '../core/panel/panel-state';
import type { FollowedNotebook } from './follow';
import { panelIcon } from './icon';
import type { Notebooks } from './notebooks';

/** What the application lends every view besides the notebooks. */
export interface Shell extends Required<Pick<PanelActions, 'menu' | 'runKey' | 'nameOf' | 'keep'>> {
  /** Null where there is no main area for a second document. */
  openMain: ((section: string | null) => void) | null;
  /** Gives the panel more room or takes it back, where there is no main area. */
  widen: (() => void) | null;
  /** Null where a front end has none of its own. */
  executor: INotebookCellExecutor | null;
}

/** A view of the followed notebook's cell: the panel at the right, the same in the main area, or one section there. */
export class JitlabView extends Widget {
  readonly view: PanelView;
  readonly section: string | null;
  private readonly inMain: boolean;

  constructor(
    readonly notebooks: Notebooks,
    shell: Shell,
    options: { id: string; main: { only: string | null } | null }
  ) {
    super();
    this.id = options.id;
    this.section = options.main?.only ?? null;
    this.inMain = options.main !== null;
    this.node.tabIndex = -1;
    this.addClass('jl-host');
    this.title.caption = 'jitlab';
    this.title.icon = panelIcon;
    if (options.main) {
      this.title.label = this.section ?? 'jitlab';
      this.title.closable = true;
    }
    const { openMain, widen, executor, ...lent } = shell;
    const main = options.main
      ? undefined
      : openMain
        ? { label: 'Open in the main area', sections: true, open: openMain }
        : widen
          ? { label: 'Widen the panel', sections: false, open: widen }
          : undefined;
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- getters have a `this` of their own
    const own = this;
    const actions: PanelActions = {
      get kernel() {
        return own.notebook?.kernel() ?? null;
      },
      get settings() {
        return notebooks.settings;
      },
      goTo: (cell, line) => this.notebook?.goTo(cell, line),
      goToLine: (file, line) => this.notebook?.goToLine(file, line),
      togglePin: () => {
        this.notebook?.togglePin();
        notebooks.moved.emit();
      },
      leave: () => notebooks.tracker.currentWidget?.content.activate(),
      main,
      ...(executor ? { runCell: cell => this.notebook?.run(cell, executor) ?? Promise.resolve(false) } : {}),
      ...lent
    };
    const { selection } = notebooks;
    this.view = new PanelView(this.node, actions, options.main ? { selection, main: options.main } : { selection });
    const listen = (one: FollowedNotebook): void => {
      const changed = (): void => {
        if (this.notebook === one) {
          this.refresh();
        }
      };
      this.ends.push(one.link.model.changed.connect(changed), one.link.jobs.changed.connect(changed));
      this.ends.push(one.cellChanged.connect(changed));
    };
    this.ends.push(
      notebooks.each(listen),
      notebooks.moved.connect(() => this.refresh()),
      notebooks.settingsChanged.connect(() => this.view.configure())
    );
  }

  get notebook(): FollowedNotebook | null {
    return this.notebooks.current;
  }

  refresh(): void {
    const empty = { notebook: '', cell: undefined, loaded: null, source: null, other: null, pinned: false };
    this.view.show(this.notebook?.state() ?? empty);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.ends.forEach(end => end());
      this.notebooks.setShown(this, false);
      this.view.dispose();
    }
    super.dispose();
  }

  /** Gives it the keyboard. */
  focus(): void {
    if (!this.node.contains(document.activeElement)) {
      (this.node.querySelector<HTMLElement>('button') ?? this.node).focus({ preventScroll: true });
    }
  }

  /** A document in the main area has the focus when it is the current one; the panel never takes it from the notebook. */
  protected override onActivateRequest(): void {
    if (this.inMain) {
      this.focus();
    }
  }

  /** A document that is closed is gone: it would be found again, and not shown. */
  protected override onCloseRequest(message: Message): void {
    super.onCloseRequest(message);
    if (this.inMain) {
      this.dispose();
    }
  }

  protected override onAfterShow(): void {
    this.visibilityChanged();
    this.refresh();
  }

  protected override onAfterHide(): void {
    this.visibilityChanged();
  }

  protected override onAfterAttach(): void {
    this.visibilityChanged();
    this.refresh();
  }

  protected override onAfterDetach(): void {
    this.visibilityChanged();
  }

  private visibilityChanged(): void {
    this.notebooks.setShown(this, this.isVisible);
    this.shownChanged();
  }

  /** Called when it is shown, hidden or closed. */
  shownChanged: () => void = () => undefined;

  private readonly ends: (() => void)[] = [];
}
