import type { KernelAccess } from '../report/kernel';
import { joined } from '../base/format';
import { number, record } from '../base/read';

export type PageForm = 'html' | 'svg';

/** Making the page takes the kernel a while; a busy one answers all the same. */
const PATIENCE_MS = 60_000;

/** The report of a cell as a file's text: the kernel makes it and sends it in pieces. Rejects with one sentence. */
export async function fetchPage(kernel: KernelAccess, cell: string, form: PageForm, notebook: string): Promise<string> {
  let page = '';
  for (let start = 0; ;) {
    const answer = record(
      await kernel.request({ want: 'page', cell, form, start, notebook: fileOf(notebook) }, PATIENCE_MS)
    );
    const piece = record(answer.page);
    const stop = number(piece.stop) ?? 0;
    page += typeof piece.text === 'string' ? piece.text : ''; // as it is: the kernel has made it safe
    if (stop >= (number(piece.total) ?? 0)) {
      return page;
    }
    if (stop <= start) {
      throw new Error('The kernel sent only a part of the page. Save it again.');
    }
    start = stop;
  }
}

/** Where a notebook lies, as its server names it; "" is the top. A drive's own name stays in front. */
export function folderOf(notebook: string): string {
  const end = Math.max(notebook.lastIndexOf('/'), notebook.lastIndexOf(':') + 1);
  return notebook.slice(0, Math.max(0, end));
}

/** Of a notebook's path its file. */
function fileOf(notebook: string): string {
  return notebook.split(/[/:]/).at(-1) ?? '';
}

/** `softmax.ipynb` and `In [7]` become `softmax-In-7.html`; what is there already keeps its file. */
export function pageName(notebook: string, title: string, form: PageForm, taken: ReadonlySet<string>): string {
  const file = fileOf(notebook);
  const words = title.replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
  const stem = joined('-', file.replace(/\.[^.]*$/, '') || 'report', words.replaceAll(' ', '-'));
  let name = `${stem}.${form}`;
  for (let copy = 2; taken.has(name); copy++) {
    name = `${stem}-${copy}.${form}`;
  }
  return name;
}
