import { PanelView } from '../src/core/panel/panel';
import type { PanelState } from '../src/core/panel/panel-state';
import { readReport } from '../src/core/report/read-report';
import branch from './fixtures/branch.json';
import error from './fixtures/error.json';
import explained from './fixtures/explained.json';
import line from './fixtures/line.json';
import softmax from './fixtures/softmax.json';
import { hugeReport } from './huge';
import { recordedKernel } from './kernel';

const options = new URLSearchParams(location.hash.slice(1));
const theme = options.get('theme') ?? 'light';
document.body.dataset.jpThemeLight = String(theme === 'light');
document.body.dataset.jpThemeName =
  { light: 'JupyterLab Light', dark: 'JupyterLab Dark' }[theme] ?? 'JupyterLab Dark High Contrast';

const reports: Record<string, unknown> = {
  softmax,
  branch,
  line,
  error,
  explained: explained.report,
  huge: hugeReport(50_000),
  version: { version: 2 }
};
const nothing: PanelState = {
  notebook: 'softmax.ipynb',
  cell: undefined,
  loaded: true,
  source: null,
  other: { id: 'a', title: 'In [7]', lead: '21 of 22 operations compiled' },
  pinned: false
};

function stateOf(name: string): PanelState {
  if (name === 'empty' || name === 'absent') {
    return { ...nothing, loaded: name === 'empty' };
  }
  const [fixture = '', origin] = name.split(':');
  const read = readReport(reports[fixture]);
  const refused = typeof read === 'string';
  return {
    ...nothing,
    source: origin === 'edited' ? ['%%jit', 'something else'] : null,
    cell: {
      report: refused ? null : read,
      refusal: refused ? read : null,
      origin: origin === 'previous' ? 'previous' : 'live',
      running: origin === 'running',
      events: 1234
    }
  };
}

for (const name of (options.get('fixture') ?? 'softmax').split(',')) {
  const host = document.createElement('div');
  host.style.width = `${options.get('width') ?? '380'}px`;
  document.getElementById('panels')?.append(host);
  const output = options.get('as') === 'output';
  // The kernel that this report is of answers as it did; the other reports have none.
  const kernel = name.startsWith('explained') ? recordedKernel(explained.report.cell.id, options.has('jobs')) : null;
  const actions = { kernel, goTo: () => undefined, togglePin: () => undefined, leave: () => undefined };
  const view = new PanelView(host, output ? null : actions);
  const start = performance.now();
  view.show(stateOf(name));
  requestAnimationFrame(() => {
    host.dataset.firstPaintMs = String(Math.round(performance.now() - start));
    const open = options.get('open')?.split(',') ?? [];
    for (const item of host.querySelectorAll<HTMLElement>('[role=treeitem]')) {
      if (open.includes(item.dataset.id ?? '')) {
        item.click();
      }
    }
    for (const title of options.get('section')?.split(',') ?? []) {
      const heading = host.querySelector<HTMLElement>(`.jl-${title} .jl-fold`);
      if (heading?.getAttribute('aria-expanded') === 'false') {
        heading.click();
      }
    }
    const pinned = options.get('pin');
    if (pinned !== null) {
      setTimeout(() => {
        const found = [...host.querySelectorAll<HTMLElement>('[data-id]')].filter(item => item.dataset.id === pinned);
        found.at(-1)?.click();
      }, 100);
    }
    for (const title of options.get('table')?.split(',') ?? []) {
      host.querySelector<HTMLElement>(`.jl-${title} [aria-pressed]`)?.click();
    }
  });
}
