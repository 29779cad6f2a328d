import { ILabShell, ILayoutRestorer, type JupyterFrontEnd, type JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, WidgetTracker } from '@jupyterlab/apputils';
import { INotebookCellExecutor, INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import type { Widget } from '@lumino/widgets';
import { Badges } from './plugin/badges';
import { compile } from './plugin/compile';
import { addKeys, keyNames, runKey } from './plugin/commands';
import { texts } from './core/base/read';
import { readSettings } from './core/panel/settings';
import { Editors } from './plugin/editors';
import { JitlabView, type Shell } from './plugin/lab-panel';
import type { FollowedNotebook } from './plugin/follow';
import { INotebooks, Notebooks } from './plugin/notebooks';
import { firstUse } from './plugin/first-use';
import { Outputs } from './plugin/outputs';
import { addSaving } from './plugin/save';
import { StatusItem } from './plugin/status';

const PANEL = 'jitlab:panel';
const CATEGORY = 'jitlab';
const SAVES = ['jitlab:save-html', 'jitlab:save-picture'];
const NO_ARGUMENTS = { args: {} };

/** Follows the open notebooks; the other plugins show what it knows. */
const core: JupyterFrontEndPlugin<Notebooks> = {
  id: 'jitlab:core',
  description: 'Follows what jitlab compiles in the open notebooks',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ISettingRegistry],
  provides: INotebooks,
  activate: (_: JupyterFrontEnd, tracker: INotebookTracker, registry: ISettingRegistry | null): Notebooks => {
    const notebooks = new Notebooks(tracker);
    void registry?.load(PANEL).then(settings => {
      const take = (): void => notebooks.configure(readSettings(settings.composite));
      settings.changed.connect(take);
      notebooks.change = (name, value) => settings.set(name, value);
      take();
    });
    return notebooks;
  }
};

/** The panel at the right, and views of it in the main area. */
const panel: JupyterFrontEndPlugin<void> = {
  id: PANEL,
  description: 'Shows beside the notebook what was compiled, what was not, why, and what it cost',
  autoStart: true,
  requires: [INotebooks],
  optional: [ILabShell, ILayoutRestorer, ICommandPalette, IStateDB, INotebookCellExecutor],
  activate: activatePanel
};

/** A plugin that does something to each open notebook. */
function following(
  id: string,
  description: string,
  follow: (one: FollowedNotebook, notebooks: Notebooks, app: JupyterFrontEnd) => unknown
): JupyterFrontEndPlugin<void> {
  return {
    ...{ id: `jitlab:${id}`, description, autoStart: true, requires: [INotebooks] },
    activate: (app, notebooks: Notebooks) => void notebooks.each(one => void follow(one, notebooks, app))
  };
}

const badges = following('badges', 'Says below each cell what jitlab compiled of it', (one, notebooks, app) => {
  const open = (cell: string): void => {
    one.goTo(cell);
    void app.commands.execute('jitlab:open-panel');
  };
  return new Badges(one, notebooks, open);
});

/** While their kernel lives, those of the newest run. */
const outputs = following('outputs', 'Shows below each cell the report of its newest run', one => new Outputs(one));

const editors = following(
  'editors',
  'Marks the lines of a cell with their clusters and costs',
  (one, notebooks) => new Editors(one, notebooks)
);

/** One item in the status bar, where there is one. */
const status: JupyterFrontEndPlugin<void> = {
  id: 'jitlab:status',
  description: 'Says in the status bar whether jitlab is loaded and what it does',
  autoStart: true,
  requires: [INotebooks],
  optional: [IStatusBar],
  activate: (app: JupyterFrontEnd, notebooks: Notebooks, statusBar: IStatusBar | null) => {
    if (statusBar) {
      const item = new StatusItem(notebooks, () => void app.commands.execute('jitlab:open-panel'));
      statusBar.registerStatusItem('jitlab:status', {
        item,
        align: 'right',
        rank: 900,
        isActive: () => item.isWanted,
        activeStateChanged: item.wantedChanged
      });
    }
  }
};

export default [core, panel, badges, outputs, editors, status, compile, firstUse];

const WIDENED = 'jitlab:widened';
const FIRST_WIDTH = 380;

function activatePanel(
  app: JupyterFrontEnd,
  notebooks: Notebooks,
  labShell: ILabShell | null,
  restorer: ILayoutRestorer | null,
  palette: ICommandPalette | null,
  memory: IStateDB | null,
  executor: INotebookCellExecutor | null
): void {
  const { commands, shell } = app;
  const opened = new Map<string, readonly string[]>();
  const tracker = new WidgetTracker<JitlabView>({ namespace: 'jitlab' });
  let made = 0;
  const lent: Shell = {
    openMain: labShell
      ? section => void commands.execute('jitlab:open-in-main-area', section === null ? {} : { section })
      : null,
    widen: labShell ? null : () => void commands.execute('jitlab:widen-panel'),
    menu: () =>
      [...SAVES, 'jitlab:toggle-badges', 'jitlab:toggle-marks', 'jitlab:open-settings']
        .filter(id => commands.hasCommand(id) && commands.isVisible(id))
        .map(id => ({
          label: commands.label(id),
          ...(commands.isToggleable(id) ? { checked: commands.isToggled(id) } : {}),
          disabled: !commands.isEnabled(id),
          run: () => void commands.execute(id)
        })),
    executor,
    runKey: event => runKey(commands, event),
    nameOf: key => keyNames(commands, key),
    keep: (notebook, open) => {
      if (open) {
        opened.set(notebook, open);
        void memory?.save(`jitlab:open:${notebook}`, [...open]);
      }
      return opened.get(notebook) ?? null;
    }
  };
  void memory?.list('jitlab:open:').then(({ ids, values }) => {
    ids.forEach((id, index) => {
      const value = values[index];
      const notebook = id.slice('jitlab:open:'.length);
      if (Array.isArray(value) && !opened.has(notebook)) {
        opened.set(notebook, texts(value));
      }
    });
  });

  const view = new JitlabView(notebooks, lent, { id: 'jitlab-panel', main: null });
  shell.add(view, 'right', { rank: 700, type: 'jitlab' });
  restorer?.add(view, view.id);
  view.shownChanged = () => widenOnce(view);
  const open = (): void => {
    labShell?.expandRight();
    shell.activateById(view.id);
  };
  notebooks.each(one => {
    one.link.loadedNow.connect(() => {
      if (notebooks.settings.openOnLoad) {
        open();
      }
    });
  });

  commands.addCommand('jitlab:open-panel', {
    label: 'Show the jitlab panel',
    caption: 'What was compiled, what was not, why, and what it cost',
    describedBy: NO_ARGUMENTS,
    execute: () => {
      open();
      view.focus();
    }
  });
  commands.addCommand('jitlab:open-in-main-area', {
    label: args =>
      typeof args.section === 'string' ? `Open ${args.section} in the main area` : 'Open in the main area',
    caption: 'The same cell with more room',
    describedBy: {
      args: {
        type: 'object',
        properties: { section: { type: 'string', description: 'One section alone; without it all of them.' } }
      }
    },
    isVisible: () => labShell !== null,
    execute: args => {
      const only = typeof args.section === 'string' ? args.section : null;
      const known = tracker.find(widget => widget.section === only);
      const main = known ?? new JitlabView(notebooks, lent, { id: `jitlab-main-${++made}`, main: { only } });
      if (!known) {
        const current = notebooks.tracker.currentWidget;
        const mode = only === null ? 'split-right' : 'split-bottom';
        shell.add(main, 'main', current ? { ref: current.id, mode } : {});
        void tracker.add(main);
        if (only === null && current && view.isVisible) {
          labShell?.collapseRight(); // it would show the same beside it
        }
      }
      shell.activateById(main.id);
    }
  });
  if (restorer) {
    // Only which section it was: what it shows is the notebook's, not the layout's.
    void restorer.restore(tracker, {
      command: 'jitlab:open-in-main-area',
      args: widget => (widget.section === null ? {} : { section: widget.section }),
      name: widget => widget.section ?? 'all'
    });
  }
  commands.addCommand('jitlab:widen-panel', {
    label: 'Widen the jitlab panel',
    caption: 'There is one document here, so the panel takes the room itself',
    describedBy: NO_ARGUMENTS,
    isVisible: () => labShell === null,
    isToggled: () => view.hasClass('jl-wide'),
    isToggleable: true,
    execute: () => {
      view.toggleClass('jl-wide');
      // What shares the room with the notebook has to be wide: its own parts do not tell it of theirs.
      let side: Widget = view;
      while (side.parent && !side.parent.hasClass('lm-SplitPanel')) {
        side = side.parent;
      }
      side.node.style.minWidth = view.hasClass('jl-wide') ? '60vw' : '';
      side.parent?.fit();
      open();
    }
  });
  addToggles(app, notebooks);
  addSaving(app, notebooks);
  addKeys(app, view, tracker);
  for (const command of [
    ...['jitlab:open-panel', 'jitlab:open-in-main-area', 'jitlab:pin-cell', 'jitlab:show-keys'],
    ...SAVES,
    ...['jitlab:toggle-badges', 'jitlab:toggle-marks', 'jitlab:open-settings', 'jitlab:widen-panel']
  ]) {
    palette?.addItem({ command, category: CATEGORY });
  }

  commands.addCommand('jitlab:debug-state', {
    label: 'jitlab: state of the panel',
    isVisible: () => false,
    describedBy: NO_ARGUMENTS,
    execute: () => {
      const one = notebooks.current;
      const model = one?.link.model;
      const cell = one?.shownCell() ?? null;
      return {
        notebook: one?.notebook.context.path,
        cell,
        running: cell === null ? false : model?.cell(cell)?.running,
        cells: model?.reported(),
        loaded: model?.loaded,
        epoch: model?.epoch,
        last: model?.last,
        events: model?.eventCount,
        resumes: model?.resumes,
        shown: model?.isShown
      };
    }
  });
  // Where the user has put or closed it, it stays; it comes by itself the first time, and when %load_ext jitlab is run.
  void app.restored.then(() => {
    if (localStorage.getItem(WIDENED) === null) {
      open();
    }
  });
}

function addToggles({ commands }: JupyterFrontEnd, notebooks: Notebooks): void {
  const toggle = (id: string, label: string, name: 'badges' | 'decorations'): void => {
    commands.addCommand(id, {
      label,
      describedBy: NO_ARGUMENTS,
      isToggleable: true,
      isToggled: () => notebooks.settings[name],
      execute: () => notebooks.change(name, !notebooks.settings[name])
    });
  };
  toggle('jitlab:toggle-badges', 'Show the line below each cell', 'badges');
  toggle('jitlab:toggle-marks', 'Mark the lines of compiled cells', 'decorations');
  commands.addCommand('jitlab:open-settings', {
    label: 'jitlab settings',
    describedBy: NO_ARGUMENTS,
    isEnabled: () => commands.hasCommand('settingeditor:open'),
    execute: () => commands.execute('settingeditor:open', { query: 'jitlab' })
  });
}

/** JupyterLab gives a new right panel about 250 pixels; the user's own width is never touched. */
function widenOnce(view: JitlabView): void {
  const side = view.parent;
  if (!view.isVisible || !side || localStorage.getItem(WIDENED) !== null) {
    return;
  }
  localStorage.setItem(WIDENED, 'yes');
  view.node.style.minWidth = `${FIRST_WIDTH}px`;
  side.fit();
  const letGo = (): void => {
    clearTimeout(late);
    view.node.style.minWidth = '';
    side.fit();
  };
  // Layouts come in their own time; where there is no room it never has that width.
  const late = setTimeout(() => {
    observer.disconnect();
    letGo();
  }, 10_000);
  const observer = new ResizeObserver(() => {
    if (side.node.clientWidth >= FIRST_WIDTH - 2) {
      observer.disconnect();
      setTimeout(letGo, 500);
    }
  });
  observer.observe(side.node);
}
