import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

const plugin: JupyterFrontEndPlugin<void> = {
  id: 'jitlab:panel',
  description: 'The jitlab panel',
  autoStart: true,
  activate: (app: JupyterFrontEnd) => {
    const panel = new Widget();
    panel.id = 'jitlab-panel';
    panel.title.label = 'jitlab';
    app.shell.add(panel, 'right', { rank: 400 });
  }
};

export default plugin;
