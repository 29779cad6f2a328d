import { ReportView } from './core/panel/report-view';
import { inTwoFrames } from './core/base/theme';

/** What anywidget lends of the model in Python; `report` is the JSON of docs/reference/report-format.md, or null before the first run. */
interface Model {
  get(name: string): unknown;
  on(event: string, callback: () => void): void;
  off(event: string, callback: () => void): void;
}

/**
 * The panel's views in any front end that shows ipywidgets: VS Code, Colab, JupyterLab; and in an HTML file, which calls
 * `mount`. Themes: JupyterLab's attributes where they are, else what the host says of itself, else the system's choice.
 */
function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const view = mount(el);
  const update = (): void => view.show(model.get('report'));
  model.on('change:report', update);
  update();
  return () => {
    model.off('change:report', update);
    view.dispose();
  };
}

export function mount(host: HTMLElement): { show(report: unknown): void; dispose(): void } {
  const frame = document.createElement('div');
  frame.className = 'jl-host';
  host.append(frame);
  const view = new ReportView(frame);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const follow = (): void => {
    const { body, documentElement: root } = document;
    if (body.dataset.jpThemeLight === undefined) {
      const said = `${body.className} ${root.getAttribute('theme') ?? ''} ${body.dataset.vscodeThemeKind ?? ''}`;
      const isDark = /dark|high-contrast(?!-light)/.test(said) || (!/light/.test(said) && dark.matches);
      frame.dataset.jpThemeLight = String(!isDark);
    }
    inTwoFrames(() => view.render());
  };
  const observer = new MutationObserver(follow);
  const watched = {
    attributes: true,
    attributeFilter: ['class', 'theme', 'data-jp-theme-name', 'data-vscode-theme-kind']
  };
  observer.observe(document.body, watched);
  observer.observe(document.documentElement, watched);
  dark.addEventListener('change', follow);
  follow();
  return {
    show: report => view.show(report),
    dispose: () => {
      observer.disconnect();
      dark.removeEventListener('change', follow);
      view.dispose();
      frame.remove();
    }
  };
}

export default { render };
