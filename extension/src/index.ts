import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { FollowedNotebook } from './follow';
import { PanelView } from './core/panel';
import { panelIcon } from './icon';

const WIDENED = 'jitlab:widened';

class Panel extends Widget {
  notebook: FollowedNotebook | null = null;

  constructor(leave: () => void) {
    super();
    this.id = 'jitlab-panel';
    this.addClass('jl-host');
    this.title.caption = 'jitlab';
    this.title.icon = panelIcon;
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- a getter has a `this` of its own
    const panel = this;
    this.view = new PanelView(this.node, {
      get kernel() {
        return panel.notebook?.kernel() ?? null;
      },
      goTo: (cell, line) => {
        this.notebook?.goTo(cell, line);
      },
      togglePin: () => {
        this.notebook?.togglePin();
        this.refresh();
      },
      leave
    });
  }

  refresh(): void {
    const empty = { notebook: '', cell: undefined, loaded: null, source: null, other: null, pinned: false };
    this.view.show(this.notebook?.state() ?? empty);
  }

  /** Called when the panel is shown, hidden or closed. */
  visibilityChanged: () => void = () => undefined;

  override dispose(): void {
    this.view.dispose();
    super.dispose();
  }

  /** JupyterLab gives a new right panel about 250 pixels; the person's own width is never touched. */
  protected override onAfterShow(): void {
    this.visibilityChanged();
    this.refresh();
    if (localStorage.getItem(WIDENED) === null) {
      localStorage.setItem(WIDENED, 'yes');
      this.node.style.minWidth = '380px';
      this.parent?.fit();
      setTimeout(() => {
        this.node.style.minWidth = '';
        this.parent?.fit();
      }, 500);
    }
  }

  protected override onAfterHide(): void {
    this.visibilityChanged();
  }

  protected override onAfterAttach(): void {
    this.visibilityChanged();
  }

  protected override onAfterDetach(): void {
    this.visibilityChanged();
  }

  private readonly view: PanelView;
}

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jitlab:panel',
  description: 'Shows beside the notebook what was compiled, what was not, why, and what it cost',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ILabShell, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    tracker: INotebookTracker,
    labShell: ILabShell | null,
    restorer: ILayoutRestorer | null
  ) => {
    const panel = new Panel(() => {
      tracker.currentWidget?.content.activate();
    });
    app.shell.add(panel, 'right', { rank: 400, type: 'jitlab' });
    restorer?.add(panel, panel.id);
    const open = (): void => {
      labShell?.expandRight();
      app.shell.activateById(panel.id);
    };

    const followed = new Map<string, FollowedNotebook>();
    const follow = (): void => {
      const current = tracker.currentWidget;
      panel.notebook = (current && followed.get(current.id)) ?? null;
      panel.refresh();
    };
    tracker.widgetAdded.connect((_, notebook) => {
      const one = new FollowedNotebook(notebook);
      one.link.model.setShown(panel.isVisible);
      followed.set(notebook.id, one);
      one.link.model.changed.connect(() => {
        if (panel.notebook === one) {
          panel.refresh();
        }
      });
      one.link.jobs.changed.connect(() => {
        if (panel.notebook === one) {
          panel.refresh();
        }
      });
      one.link.loadedNow.connect(open);
      notebook.disposed.connect(() => {
        followed.delete(notebook.id);
        follow();
      });
    });
    panel.visibilityChanged = () => {
      for (const { link } of followed.values()) {
        link.model.setShown(panel.isVisible);
      }
    };
    tracker.currentChanged.connect(follow);
    tracker.activeCellChanged.connect(follow);

    app.commands.addCommand('jitlab:open', {
      label: 'Show jitlab',
      caption: 'What was compiled, what was not, why, and what it cost',
      describedBy: { args: {} },
      execute: open
    });
    app.commands.addCommand('jitlab:debug-state', {
      label: 'jitlab: state of the panel',
      isVisible: () => false,
      describedBy: { args: {} },
      execute: () => {
        const model = panel.notebook?.link.model;
        const cell = panel.notebook?.shownCell() ?? null;
        return {
          notebook: panel.notebook?.notebook.context.path,
          cell,
          running: cell === null ? false : model?.cell(cell)?.running,
          cells: model?.reported(),
          loaded: model?.loaded,
          epoch: model?.epoch,
          last: model?.last,
          events: model?.eventCount,
          resumes: model?.resumes,
          shown: panel.isVisible
        };
      }
    });
    // Where the person has put or closed it, it stays; it comes by itself the first time, and when %load_ext jitlab is run.
    void app.restored.then(() => {
      if (localStorage.getItem(WIDENED) === null) {
        open();
      }
    });
  }
};

export default plugin;
