import { test as base, expect, type Locator, type Page } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PANEL = readFileSync(join(__dirname, '../../extension/src/core/panel/sections.ts'), 'utf-8');
/** The titles of the panel's sections, in their order. */
export const SECTIONS = [...PANEL.matchAll(/title: '([^']+)'/g)].map(([, title = '']) => title);

/** The parts of JupyterLab's application that the tests drive; it is exposed by serve.py's settings. */
interface App {
  commands: { execute(id: string, args?: object): Promise<unknown> };
  /** Not public; how else could a test reach the registry of settings. */
  pluginRegistry: { _services: Map<{ name: string }, unknown> };
  resolveRequiredService(token: object): Promise<SettingRegistry>;
  shell: {
    currentWidget: NotebookWidget;
    rightCollapsed: boolean;
    widgets(area: 'main'): Iterable<NotebookWidget & { dispose(): void }>;
    activateById(id: string): void;
  };
  started: Promise<void>;
}

interface SettingRegistry {
  upload(plugin: string, raw: string): Promise<unknown>;
}

interface NotebookWidget {
  id: string;
  content: {
    activeCellIndex: number;
    model: { cells: { length: number }; sharedModel: { insertCells(index: number, cells: object[]): void } };
    scrollToItem(index: number): Promise<void>;
    widgets: { node: HTMLElement; model: CellModel }[];
  };
  context: {
    path: string;
    ready: Promise<void>;
    save(): Promise<void>;
    sessionContext: SessionContext;
  };
}

interface SessionContext {
  ready: Promise<void>;
  session: {
    kernel: {
      id: string;
      connectionStatus: string;
      status: string;
      interrupt(): Promise<void>;
      requestExecute(content: { code: string; silent: boolean }): { done: Promise<unknown> };
    } | null;
  } | null;
  changeKernel(model: { id: string } | { name: string }): Promise<unknown>;
  restartKernel(): Promise<void>;
}

interface CellModel {
  id: string;
  type: string;
  sharedModel: { getSource(): string; setSource(text: string): void };
  toJSON(): { outputs?: { data?: Record<string, string | string[] | undefined> }[] };
}

const LET_GO = 'let-go.txt';

/** What JupyterLab keeps of its layout. */
interface Workspace {
  'layout-restorer:data'?: { main: { current: string }; right: { collapsed: boolean } };
}

declare global {
  interface Window {
    jupyterapp: App;
    /** When JupyterLab had its kernel (again), and when jitlab knew of it. */
    jitlabTimes?: { gone: boolean; lab: number; panel: number };
  }
}

/**
 * Tests with one JupyterLab among them: to load the page and to start kernels is what takes long, not what the tests do.
 * Each test says what it needs (`open`, `has`) and finds it done or does it, so each can also run alone. After a test
 * that failed a new worker begins, with a new page and new kernels.
 */
export const test = base.extend<{ toldErrors: undefined }, { lab: Lab }>({
  toldErrors: [
    async ({ lab }, use) => {
      await use(undefined);
      expect(await lab.ownErrors(), "what jitlab's own code told of in the outputs of the notebooks").toEqual([]);
    },
    { auto: true }
  ],
  lab: [
    async ({ browser }, use, { project }) => {
      const { baseURL, viewport } = project.use;
      const context = await browser.newContext({ baseURL, viewport });
      const lab = new Lab(await context.newPage());
      await lab.endKernels();
      await lab.page.goto('lab?reset');
      await lab.started();
      await use(lab);
      await context.close();
    },
    { scope: 'worker', timeout: 300_000 }
  ]
});

/** A notebook in a real JupyterLab, or in Notebook 7, with jitlab's panel beside it. */
export class Lab {
  readonly panel: Locator;
  /** What this page has opened, and the cells that its kernel has run. */
  private opened = '';
  private readonly ran = new Set<string>();

  constructor(readonly page: Page) {
    this.panel = page.locator('#jitlab-panel .jl');
  }

  /** Outputs of the open notebooks in which jitlab says that it could not do something. */
  async ownErrors(): Promise<string[]> {
    return this.page.evaluate(() =>
      [...((window as Partial<Window>).jupyterapp?.shell.widgets('main') ?? [])]
        .flatMap(({ content }: { content?: Partial<NotebookWidget['content']> }) => content?.widgets ?? [])
        .flatMap(({ model }) => model.toJSON().outputs ?? [])
        .map(output => JSON.stringify(output))
        .filter(text => text.includes('jitlab could not'))
    );
  }

  /** Opens a notebook of the tests' folder, if it is not open already; `kernel: false` opens it without one. */
  async open(path: string, options: { kernel?: boolean } = {}): Promise<void> {
    const { kernel = true } = options;
    if (this.opened === path) {
      return;
    }
    this.opened = path;
    this.ran.clear();
    await this.page.evaluate(
      async ([file, start]) => {
        const { commands, shell } = window.jupyterapp;
        const others = [...shell.widgets('main')];
        await commands.execute('docmanager:open', {
          path: file,
          factory: 'Notebook',
          kernelPreference: { shouldStart: start, canStart: start, autoStartDefault: start }
        });
        others.forEach(widget => {
          widget.dispose();
        });
      },
      [path, kernel] as const
    );
    // After a reload JupyterLab opens the file of the page's address once more, also late: here it is in the way.
    await expect
      .poll(() =>
        this.page.evaluate(file => {
          const { shell } = window.jupyterapp;
          const widgets: (Partial<NotebookWidget> & { dispose(): void })[] = [...shell.widgets('main')];
          const late = widgets.filter(({ context }) => context?.path !== file);
          late.forEach(widget => {
            widget.dispose();
          });
          const now = shell.currentWidget as Partial<NotebookWidget> | null; // none for a moment, behind a slow server
          if (now === null && widgets[0]?.id !== undefined) {
            shell.activateById(widgets[0].id);
          }
          return late.length === 0 && now?.context?.path === file;
        }, path)
      )
      .toBe(true);
    await this.ready(kernel);
  }

  /** Opens a notebook anew: its widgets are made by the settings as they are now. */
  async openNew(path: string): Promise<void> {
    this.opened = '';
    await this.page.evaluate(() => {
      [...window.jupyterapp.shell.widgets('main')].forEach(widget => {
        widget.dispose();
      });
    });
    await this.open(path);
  }

  /** Opens a second notebook, in a tab of its own. */
  async openBeside(path: string): Promise<void> {
    await this.page.evaluate(async file => {
      await window.jupyterapp.commands.execute('docmanager:open', { path: file, factory: 'Notebook' });
    }, path);
    this.opened = '';
    await this.ready(true);
  }

  async activate(path: string): Promise<void> {
    await this.page.evaluate(file => {
      const { shell } = window.jupyterapp;
      const found = [...shell.widgets('main')].find(widget => widget.context.path === file);
      shell.activateById(found?.id ?? '');
    }, path);
  }

  async addCells(count: number): Promise<void> {
    await this.page.evaluate(many => {
      const { model } = window.jupyterapp.shell.currentWidget.content;
      const made = Array.from({ length: many }, () => ({ cell_type: 'code', source: '' }));
      model.sharedModel.insertCells(model.cells.length, made);
    }, count);
  }

  async selectLast(): Promise<void> {
    await this.page.evaluate(async () => {
      const { content } = window.jupyterapp.shell.currentWidget;
      content.activeCellIndex = content.widgets.length - 1;
      await content.scrollToItem(content.activeCellIndex);
    });
  }

  async scrollTo(cell: string): Promise<void> {
    await this.page.evaluate(async id => {
      const { content } = window.jupyterapp.shell.currentWidget;
      await content.scrollToItem(content.widgets.findIndex(({ model }) => model.id === id));
    }, cell);
  }

  /** Opens a notebook in Notebook 7, in another page; `isUser`: which does not know that a program drives it. */
  async inNotebook7(path: string, isUser = false): Promise<Lab> {
    const page = await this.page.context().newPage();
    const lab = new Lab(page);
    if (isUser) {
      await page.addInitScript(() => Object.defineProperty(navigator, 'webdriver', { get: () => false }));
    }
    await page.goto(`notebooks/${path}`);
    await lab.started();
    await lab.ready(true);
    return lab;
  }

  /** The notebook is open, and its kernel has run these cells, now or before; the last one is the active one. */
  async has(path: string, ...cells: string[]): Promise<void> {
    await this.open(path);
    await this.run(...cells.filter(cell => !this.ran.has(cell)));
    const last = cells.at(-1);
    if (last !== undefined) {
      await this.select(last);
    }
  }

  async started(): Promise<void> {
    await this.page.waitForFunction(() => 'jupyterapp' in window);
    await this.page.evaluate(async () => {
      const app = window.jupyterapp;
      await app.started;
      // JupyterLab does not write a cell's id on its element.
      setInterval(() => {
        const widget = app.shell.currentWidget as Partial<NotebookWidget> | null; // the last one may have been closed
        for (const { node, model } of widget?.content?.widgets ?? []) {
          node.dataset.testCell = model.id;
        }
      }, 50);
    });
  }

  /** `busy`: while a cell runs, when the kernel can't be waited for. */
  async reload(options: { busy?: boolean; watch?: boolean } = {}): Promise<void> {
    await this.layoutSaved();
    // JupyterLab restores its layout, and opens the file of the page's address besides, some time later: then in a test's way.
    await this.page.evaluate(() => {
      history.replaceState(null, '', location.href.replace(/\/lab(.*?)\/tree\/.*$/, '/lab$1'));
    });
    await this.page.reload();
    await this.started();
    if (options.watch) {
      await this.watchKernel('known', true);
    }
    await this.ready(options.busy !== true);
  }

  /** Runs cells one after the other and waits for their ends. */
  async run(...cells: string[]): Promise<void> {
    for (const cell of cells) {
      await this.select(cell);
      const ended = await this.page.evaluate(() => window.jupyterapp.commands.execute('notebook:run-cell'));
      if (ended !== true) {
        const outputs = await this.page.locator('.jp-Notebook .jp-mod-active .jp-OutputArea').allTextContents();
        throw new Error(`cell ${cell} failed: ${outputs.join('\n')}`);
      }
      this.ran.add(cell);
    }
  }

  /** Runs a cell and does not wait for it; `slow` of live.ipynb runs until `letGo` is called. */
  async start(cell: string): Promise<void> {
    await this.page.request.delete(`api/contents/${LET_GO}`);
    await this.select(cell);
    await this.page.evaluate(() => void window.jupyterapp.commands.execute('notebook:run-cell'));
  }

  /** Runs the code cells from the first to this one. */
  async runThrough(last: string): Promise<void> {
    const cells = await this.page.evaluate(() =>
      window.jupyterapp.shell.currentWidget.content.widgets
        .filter(widget => widget.model.type === 'code')
        .map(widget => widget.model.id)
    );
    expect(cells).toContain(last);
    await this.run(...cells.slice(0, cells.indexOf(last) + 1));
  }

  async letGo(): Promise<void> {
    const file = { type: 'file', format: 'text', content: 'go' };
    expect((await this.page.request.put(`api/contents/${LET_GO}`, { data: file })).ok()).toBe(true);
  }

  async select(cell: string): Promise<void> {
    await this.page.evaluate(id => {
      const { content, context } = window.jupyterapp.shell.currentWidget;
      const index = content.widgets.findIndex(widget => widget.model.id === id);
      if (index < 0) {
        throw new Error(`${context.path} has no cell ${id}`);
      }
      content.activeCellIndex = index;
    }, cell);
  }

  async restartKernel(): Promise<void> {
    this.ran.clear();
    await this.page.evaluate(() => window.jupyterapp.shell.currentWidget.context.sessionContext.restartKernel());
  }

  async interruptKernel(): Promise<void> {
    await this.page.evaluate(() =>
      window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel?.interrupt()
    );
  }

  async changeKernel(model: { id: string } | { name: string }): Promise<void> {
    this.ran.clear();
    await this.page.evaluate(
      chosen => window.jupyterapp.shell.currentWidget.context.sessionContext.changeKernel(chosen),
      model
    );
  }

  /**
   * Begins to watch when JupyterLab has its kernel (`gone`: it has none yet; else: once it had lost it), and when the panel
   * knows of that: `known`, whether it has jitlab; `told`, that no cell runs any more.
   */
  async watchKernel(until: 'known' | 'told' = 'known', gone = false): Promise<void> {
    await this.page.evaluate(
      ([wanted, isGone]) => {
        const times = { gone: isGone, lab: 0, panel: 0 };
        window.jitlabTimes = times;
        const { commands, shell } = window.jupyterapp;
        const session = () =>
          (shell.currentWidget as Partial<NotebookWidget> | null)?.context?.sessionContext.session ?? null;
        const first = session()?.kernel?.id;
        const timer = setInterval(() => {
          const kernel = session()?.kernel;
          const isHere = kernel?.connectionStatus === 'connected' && ['idle', 'busy'].includes(kernel.status);
          times.gone ||= !isHere || kernel.id !== first;
          times.lab = isHere && times.gone ? times.lab || performance.now() : 0;
          if (times.lab) {
            const asked = commands.execute('jitlab:debug-state') as Promise<{
              loaded: boolean | null;
              running: boolean;
            }>;
            void asked.then(({ loaded, running }) => {
              if (wanted === 'known' ? loaded !== null : !running) {
                times.panel ||= performance.now();
                clearInterval(timer);
              }
            });
          }
        }, 10);
      },
      [until, gone] as const
    );
  }

  /** Milliseconds from when JupyterLab had its kernel to when the panel was connected with it. */
  async connected(): Promise<number> {
    await this.page.waitForFunction(() => (window.jitlabTimes?.panel ?? 0) > 0);
    return this.page.evaluate(() => {
      const { lab, panel } = window.jitlabTimes ?? { lab: 0, panel: 0 };
      return Math.round(panel - lab);
    });
  }

  kernelId(): Promise<string> {
    return this.page.evaluate(
      () => window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel?.id ?? ''
    );
  }

  /** A notebook as a file of the tests' folder. */
  async write(path: string, notebook: object): Promise<void> {
    const answer = await this.page.request.put(`api/contents/${path}`, {
      data: { type: 'notebook', format: 'json', content: notebook },
      timeout: 120_000
    });
    expect(answer.ok()).toBe(true);
  }

  /** A cell's element, by its id. */
  cell(id: string): Locator {
    return this.page.locator(`[data-test-cell="${id}"]`);
  }

  async command(id: string, args: object = {}): Promise<void> {
    await this.page.evaluate(
      async ([name, given]) => {
        await window.jupyterapp.commands.execute(name, given);
      },
      [id, args] as const
    );
  }

  async showPanel(): Promise<void> {
    if (!(await this.panel.isVisible())) {
      await this.command('jitlab:open-panel');
    }
    await expect(this.panel).toBeVisible();
  }

  /** Gives a cell another text. */
  async setSource(cell: string, text: string): Promise<void> {
    await this.edit(cell, () => text);
  }

  /** Changes a cell's text as typing would. */
  async edit(cell: string, change: (source: string) => string): Promise<void> {
    const now = await this.page.evaluate(id => {
      const { widgets } = window.jupyterapp.shell.currentWidget.content;
      return widgets.find(({ model }) => model.id === id)?.model.sharedModel.getSource() ?? '';
    }, cell);
    const next = change(now);
    expect(next).not.toBe(now);
    await this.page.evaluate(
      ([id, text]) => {
        const { widgets } = window.jupyterapp.shell.currentWidget.content;
        widgets.find(({ model }) => model.id === id)?.model.sharedModel.setSource(text);
      },
      [cell, next] as const
    );
  }

  /** Writes a person's settings of a plugin; JupyterLab takes them at once. */
  async setting(plugin: string, settings: object): Promise<void> {
    await this.page.evaluate(
      async ([id, raw]) => {
        const app = window.jupyterapp;
        const token = [...app.pluginRegistry._services.keys()].find(({ name }) => name.endsWith(':ISettingRegistry'));
        const registry = await app.resolveRequiredService(token ?? {});
        await registry.upload(id, raw);
      },
      [plugin, JSON.stringify(settings)] as const
    );
  }

  async theme(name: string): Promise<void> {
    await this.command('apputils:change-theme', { theme: name });
    await expect(this.page.locator('body')).toHaveAttribute('data-jp-theme-name', name);
  }

  async save(): Promise<void> {
    await this.page.evaluate(() => window.jupyterapp.shell.currentWidget.context.save());
  }

  /** Drags the panel's edge until it is so wide. */
  async widen(width: number): Promise<void> {
    const box = await this.panel.boundingBox();
    expect(box).not.toBeNull();
    const { x, y, width: before } = box ?? { x: 0, y: 0, width: 0 };
    await this.page.mouse.move(x - 2, y + 200);
    await this.page.mouse.down();
    await this.page.mouse.move(x - 2 - (width - before), y + 200, { steps: 5 });
    await this.page.mouse.up();
    await expect.poll(async () => (await this.panel.boundingBox())?.width).toBeCloseTo(width, -1);
  }

  /** What a page without JupyterLab shows of a cell: the HTML of its last rich output. */
  htmlOutput(cell: string): Promise<string> {
    return this.page.evaluate(id => {
      const found = window.jupyterapp.shell.currentWidget.content.widgets.find(widget => widget.model.id === id);
      const outputs = found?.model.toJSON().outputs ?? [];
      const html = outputs.map(output => output.data?.['text/html']).findLast(data => data !== undefined);
      return Array.isArray(html) ? html.join('') : (html ?? '');
    }, cell);
  }

  /** Opens a section that is closed: at first only Clusters is open, and the one that the advice speaks of. */
  async unfold(title: string): Promise<Locator> {
    const section = this.section(title);
    await unfold(section);
    return section;
  }

  section(title: string): Locator {
    return this.panel.getByRole('region', { name: title, exact: true });
  }

  /** The names of what stands in the clusters picture, as a screen reader hears them. */
  async clusterNames(): Promise<string[]> {
    const items = this.section('Clusters').locator('[data-kind=cluster], [data-kind=host]');
    await expect(items.first()).toBeAttached();
    return items.evaluateAll(elements => elements.map(one => one.getAttribute('aria-label')?.split(',')[0] ?? ''));
  }

  /** The panel is hidden, the kernel knows it, and what it had sent until then has come. */
  async quiet(): Promise<void> {
    await expect.poll(() => this.debugState()).toMatchObject({ shown: false });
    await this.page.evaluate(
      () =>
        window.jupyterapp.shell.currentWidget.context.sessionContext.session?.kernel?.requestExecute({
          code: '',
          silent: true
        }).done
    );
  }

  debugState(): Promise<Record<string, unknown>> {
    return this.page.evaluate(
      () => window.jupyterapp.commands.execute('jitlab:debug-state') as Promise<Record<string, unknown>>
    );
  }

  /** JupyterLab keeps its layout a while after a change; what is not kept yet would not be there after a reload. */
  private async layoutSaved(): Promise<void> {
    await expect
      .poll(async () => {
        const answer = await this.page.request.get('lab/api/workspaces/default');
        const kept = ((await answer.json()) as { data: Workspace }).data['layout-restorer:data'];
        const now = await this.page.evaluate(() => {
          const { shell } = window.jupyterapp;
          return { current: `notebook:${shell.currentWidget.context.path}`, collapsed: shell.rightCollapsed };
        });
        return kept?.main.current === now.current && kept.right.collapsed === now.collapsed;
      })
      .toBe(true);
  }

  /** Kernels outlive pages: a worker starts without those of the worker before it. */
  async endKernels(): Promise<void> {
    const sessions = (await (await this.page.request.get('api/sessions')).json()) as { id: string }[];
    await Promise.all(sessions.map(({ id }) => this.page.request.delete(`api/sessions/${id}`)));
  }

  private async ready(kernel: boolean): Promise<void> {
    await expect(this.page.locator('.jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook').first()).toBeVisible();
    await this.page.evaluate(async withKernel => {
      const { context } = window.jupyterapp.shell.currentWidget;
      await context.ready;
      if (withKernel) {
        await context.sessionContext.ready;
      }
    }, kernel);
  }
}

/** Opens a section of the panel that is closed. */
/** Opens a section, and waits until what it shows has been loaded. */
export async function unfold(section: Locator): Promise<void> {
  await setOpen(section, true);
  await expect(section.locator('.jl-body > *').first()).toBeAttached();
}

/** Closes a section of the panel that is open. */
export const fold = (section: Locator): Promise<void> => setOpen(section, false);

/** A report that comes just now opens the section that its advice speaks of, so the look and the click are one step. */
async function setOpen(section: Locator, open: boolean): Promise<void> {
  const heading = section.locator('h3 button').first();
  await heading.evaluate((button: HTMLElement, wanted) => {
    if (button.getAttribute('aria-expanded') !== wanted) {
      button.click();
    }
  }, String(open));
  await expect(heading).toHaveAttribute('aria-expanded', String(open));
}
