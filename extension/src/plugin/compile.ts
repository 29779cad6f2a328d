import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IToolbarWidgetRegistry, Notification } from '@jupyterlab/apputils';
import type { Cell } from '@jupyterlab/cells';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { Widget } from '@lumino/widgets';
import { h } from '../core/base/dom';
import { refusal } from '../core/base/read';
import type { FollowedNotebook } from './follow';
import { magicOf, switchText, toggled, UNKNOWN } from './magic';
import { INotebooks, type Notebooks } from './notebooks';

const CELL = 'jitlab:compile-cell';
const ALWAYS = 'jitlab:toggle-jit';

/** `%%jit` and `%jit on` by hand: an action of each cell, and a button in the toolbar of each notebook. */
export const compile: JupyterFrontEndPlugin<void> = {
  id: 'jitlab:compile',
  description: 'Compiles a cell, or all cells, by a click',
  autoStart: true,
  requires: [INotebooks],
  optional: [ICommandPalette, IToolbarWidgetRegistry],
  activate: (app, notebooks: Notebooks, palette: ICommandPalette | null, toolbars: IToolbarWidgetRegistry | null) => {
    addCommands(app, notebooks);
    toolbars?.addFactory<NotebookPanel>('Notebook', 'jitlab-switch', panel => new SwitchButton(notebooks, panel));
    for (const command of [CELL, ALWAYS]) {
      palette?.addItem({ command, category: 'jitlab' });
    }
  }
};

function addCommands({ commands }: JupyterFrontEnd, notebooks: Notebooks): void {
  const cell = (): Cell | null => {
    const active = notebooks.current?.notebook.content.activeCell ?? null;
    return active?.model.type === 'code' ? active : null;
  };
  const magic = (): string => magicOf(cell()?.model.sharedModel.getSource() ?? '');
  commands.addCommand(CELL, {
    label: 'Compile this cell (%%jit)',
    caption: () =>
      magic() === 'jit' ? 'Take %%jit away: this cell runs as Python' : 'Put %%jit above this cell: it runs compiled',
    iconClass: 'jl-compile-icon',
    describedBy: { args: {} },
    isToggleable: true,
    isToggled: () => magic() === 'jit',
    isEnabled: () => cell() !== null && magic() !== 'other',
    isVisible: () => isPython(notebooks.current),
    execute: () => {
      const source = cell()?.model.sharedModel;
      if (source) {
        const { start, end, text } = toggled(source.getSource());
        source.updateSource(start, end, text);
        if (text) {
          void told(notebooks.current?.link.loadJitlab());
        }
      }
    }
  });
  commands.addCommand(ALWAYS, {
    label: 'Compile all cells (%jit on)',
    caption: () => switchText(notebooks.current?.link.jit ?? UNKNOWN).about,
    describedBy: { args: {} },
    isToggleable: true,
    isToggled: () => notebooks.current?.link.jit.on === true,
    isEnabled: () => notebooks.current !== null,
    isVisible: () => isPython(notebooks.current),
    execute: () => {
      const link = notebooks.current?.link;
      return told(link?.switchJit(link.jit.on !== true));
    }
  });
  const changed = (): void => {
    commands.notifyCommandChanged(CELL);
    commands.notifyCommandChanged(ALWAYS);
  };
  notebooks.moved.connect(changed);
  notebooks.each(one => {
    one.link.switched.connect(changed);
    one.cellChanged.connect(touched => {
      if (touched.model.id === cell()?.model.id) {
        commands.notifyCommandChanged(CELL);
      }
    });
  });
}

/** Kernels of other languages have no magics. */
function isPython(one: FollowedNotebook | null): boolean {
  const language = one?.notebook.content.model?.defaultKernelLanguage;
  return one !== null && (!language || language === 'python');
}

async function told(done: Promise<void> | undefined): Promise<void> {
  try {
    await done;
  } catch (error) {
    Notification.error(refusal(error));
  }
}

/** Whether `%jit` is on in this notebook's kernel, and the other of it by a click. */
class SwitchButton extends Widget {
  constructor(notebooks: Notebooks, panel: NotebookPanel) {
    super();
    this.addClass('jl-switch');
    const end = notebooks.each(one => {
      if (one.notebook === panel && !this.isDisposed) {
        this.follow(one);
      }
    });
    this.disposed.connect(end);
  }

  private follow(one: FollowedNotebook): void {
    const { link } = one;
    const lamp = h('span.jl-switch-lamp');
    const label = h('span');
    const button = h('button', { onclick: () => void told(link.switchJit(link.jit.on !== true)) }, lamp, label);
    const show = (): void => {
      const { text, about } = switchText(link.jit);
      button.setAttribute('aria-pressed', String(link.jit.on === true));
      button.title = about;
      label.textContent = text;
      this.setHidden(!isPython(one));
    };
    this.node.replaceChildren(button);
    this.disposed.connect(link.switched.connect(show));
    one.notebook.sessionContext.kernelChanged.connect(show);
    void one.notebook.context.ready.then(show);
    show();
  }
}
