import type { JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { INotebooks, type Notebooks } from './notebooks';

const TOUR = 'jitlab:show-tour';

/** A tour of four steps, once, when the first report of a kernel is shown; and whenever it is asked for. */
export const firstUse: JupyterFrontEndPlugin<void> = {
  id: 'jitlab:tour',
  description: 'Shows in four steps what jitlab adds to a notebook',
  autoStart: true,
  requires: [INotebooks],
  optional: [ICommandPalette],
  activate: ({ commands }: JupyterFrontEnd, notebooks: Notebooks, palette: ICommandPalette | null) => {
    const show = async (isAsked: boolean): Promise<void> => {
      const { showTour } = await import('./tour');
      showTour(notebooks, isAsked, () => {
        if (notebooks.settings.tour) {
          void notebooks.change('tour', false);
        }
      });
    };
    commands.addCommand(TOUR, {
      label: 'Tour of jitlab',
      caption: 'What jitlab adds to a notebook, in four steps',
      describedBy: { args: {} },
      execute: async () => {
        await commands.execute('jitlab:open-panel');
        await show(true);
      }
    });
    palette?.addItem({ command: TOUR, category: 'jitlab' });
    let isShown = navigator.webdriver; // a program that drives the browser is no new user
    notebooks.each(({ link: { model } }) => {
      model.changed.connect(id => {
        const report = id === null ? undefined : model.cell(id);
        if (
          !isShown &&
          notebooks.isConfigured &&
          notebooks.settings.tour &&
          model.isShown &&
          report?.origin === 'live' &&
          report.report
        ) {
          isShown = true;
          void show(false);
        }
      });
    });
  }
};
