import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { download } from '../core/base/dom';
import { refusal } from '../core/base/read';
import { fetchPage, folderOf, pageName, type PageForm } from '../core/panel/saving';
import type { Notebooks } from './notebooks';

const TYPES: Record<PageForm, string> = { html: 'text/html', svg: 'image/svg+xml' };

/** Commands that write the report that is shown into a file beside its notebook. */
export function addSaving(app: JupyterFrontEnd, notebooks: Notebooks): void {
  const add = (id: string, label: string, caption: string, form: PageForm): void => {
    app.commands.addCommand(id, {
      label,
      caption,
      describedBy: { args: {} },
      // The kernel makes the text: a saved report has no kernel.
      isEnabled: () => notebooks.current?.kernel() != null,
      execute: () => save(app, notebooks, form)
    });
  };
  add('jitlab:save-html', 'Save as HTML', 'One file beside the notebook, which needs nothing else', 'html');
  add('jitlab:save-picture', 'Save the picture (SVG)', 'The picture of the report, beside the notebook', 'svg');
}

/** The file's path; "" where the browser has it instead, or nothing was saved. */
async function save(app: JupyterFrontEnd, notebooks: Notebooks, form: PageForm): Promise<string> {
  const one = notebooks.current;
  const kernel = one?.kernel();
  const report = one?.state().cell?.report;
  if (!one || !kernel || !report) {
    return '';
  }
  const notebook = one.notebook.context.path;
  const { contents } = app.serviceManager;
  let page: string;
  try {
    page = await fetchPage(kernel, report.cell.id, form, notebook);
  } catch (error) {
    Notification.error(`The report of ${report.cell.title} was not saved. ${refusal(error)}`);
    return '';
  }
  const folder = folderOf(notebook);
  try {
    const listed = (await contents.get(folder)).content as { name: string }[];
    const name = pageName(notebook, report.cell.title, form, new Set(listed.map(file => file.name)));
    const path = folder === '' || folder.endsWith(':') ? `${folder}${name}` : `${folder}/${name}`;
    const saved = await contents.save(path, { name, path, type: 'file', format: 'text', content: page });
    Notification.success(`Saved ${report.cell.title} as ${saved.path}.`, {
      autoClose: 8000,
      actions: [
        {
          label: 'Open',
          callback: () => void app.commands.execute('docmanager:open', { path: saved.path })
        }
      ]
    });
    return saved.path;
  } catch (error) {
    download(page, pageName(notebook, report.cell.title, form, new Set()), TYPES[form]);
    Notification.warning(`No file can be written beside the notebook, so the browser has it. ${refusal(error)}`);
    return '';
  }
}
