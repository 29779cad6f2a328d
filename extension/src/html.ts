import { PanelView } from './core/panel/panel';
import { readReport } from './core/report/read-report';

/** The report as a page: the data stands in the file, the static picture below gives way once the script has run. */
const data = document.querySelector('script[type="application/vnd.jitlab.report+json"]');
const host = document.getElementById('jl-live');
if (data && host) {
  const read = readReport(JSON.parse(data.textContent));
  const frame = document.createElement('div');
  frame.className = 'jl-host';
  host.append(frame);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const view = new PanelView(frame, null);
  const show = (): void => {
    document.body.dataset.jpThemeLight = String(!dark.matches);
    frame.dataset.jpThemeLight = String(!dark.matches);
    view.show({
      notebook: '',
      cell: {
        report: typeof read === 'string' ? null : read,
        refusal: typeof read === 'string' ? read : null,
        origin: 'saved',
        running: false,
        events: 0
      },
      loaded: null,
      source: null,
      other: null,
      pinned: false
    });
  };
  dark.addEventListener('change', show);
  show();
  document.documentElement.classList.add('jl-scripted');
  for (const details of document.querySelectorAll('details')) {
    details.open = false; // what the views show is in the tables once more, for whoever looks for it
  }
  requestAnimationFrame(() => {
    for (const name of ['clusters', 'retraces', 'timeline']) {
      frame.querySelector<HTMLElement>(`.jl-${name} .jl-fold[aria-expanded="false"]`)?.click();
    }
  });
}
