import { expect, type Request } from '@playwright/test';
import { smallOrFaint } from './access';
import { test, type Lab } from './lab';
import { notebookOf, reportCell, savedReport } from './notebooks';

test('a kernel that has not loaded jitlab is told how', async ({ lab }) => {
  await lab.open('empty.ipynb');
  await expect(lab.panel).toContainText('This kernel has not loaded jitlab');
  await expect(lab.panel).toContainText('%load_ext jitlab');
});

test('a panel that was closed stays closed, until jitlab is loaded', async ({ lab }) => {
  await lab.open('empty.ipynb');
  await expect(lab.panel).toBeVisible();
  await lab.page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-right-area'));
  await expect(lab.panel).toBeHidden();
  const sizes = await scriptsOf(lab, () => lab.reload());
  await expect(lab.panel).toBeHidden();
  expect(sizes.length).toBeGreaterThan(2);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(250_000);
  await lab.run('load');
  await expect(lab.panel).toBeVisible();
  // What a section shows is loaded when it is opened; where the server sends nothing the section says so, and asks again.
  await lab.page.route(SCRIPTS, route => route.abort());
  await lab.open('saved.ipynb', { kernel: false });
  await expect(lab.section('Clusters')).toContainText('The server did not send this section.');
  await expect(lab.section('Clusters')).toContainText('1 cluster');
  await lab.page.unroute(SCRIPTS);
  await lab.section('Clusters').getByRole('button', { name: 'Try again' }).click();
  expect(await lab.clusterNames()).toEqual(['cluster_0']);
});

test('a cell that runs shows its clusters, retraces and both timelines', async ({ lab }) => {
  await lab.has('live.ipynb', 'load', 'softmax');
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await expect(lab.panel).toContainText('Make lr an array: it retraced 5 times');
  await expect(lab.section('Clusters').getByRole('treeitem').first()).toBeVisible();
  expect(await lab.clusterNames()).toEqual(['cluster_0', 'ArgPartition', 'cluster_1']);
  await expect(await lab.unfold('Retraces')).toContainText('lr changed 5 times');
  await expect(lab.section('Retraces')).toContainText('each new Python number is traced again');
  await expect((await lab.unfold('Timeline')).locator('canvas')).toHaveAttribute(
    'aria-label',
    /op by op: 22 spans.*compiled: 2 spans.*kernels: 4 spans/
  );
  await lab.section('Timeline').getByRole('button', { name: 'Show as a table' }).click();
  await expect(lab.section('Timeline').getByRole('table')).toContainText('cluster_0');
  await lab.section('Timeline').getByRole('button', { name: 'Show as a table' }).click();
  await expect(lab.page.locator('.jp-mod-active .jl-output')).toContainText('21 of 22 operations compiled');
});

test('the panel follows the active cell', async ({ lab }) => {
  await lab.has('live.ipynb', 'load', 'softmax', 'line');
  await expect(lab.panel).toContainText('All 2 operations compiled');
  await lab.select('softmax');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await lab.panel.getByRole('button', { name: 'Pin this cell' }).click();
  await lab.select('line');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await lab.panel.getByRole('button', { name: 'Unpin this cell' }).click();
  await expect(lab.panel).toContainText('All 2 operations compiled');
});

test('the clusters can be read and opened by keyboard alone', async ({ lab }) => {
  await lab.has('live.ipynb', 'load', 'softmax');
  const items = lab.section('Clusters').getByRole('treeitem');
  await items.first().focus();
  await expect(items.first()).toHaveAttribute('aria-expanded', 'true');
  await lab.page.keyboard.press('n');
  await expect(lab.page.locator(':focus')).toHaveAttribute(
    'aria-label',
    /^Not fused: p is stored, 2.4 MB\. Take may read/
  );
  await lab.page.keyboard.press('End');
  await expect(lab.page.locator(':focus')).toHaveAttribute('aria-label', /^cluster_1, lines 8–11/);
  await lab.page.keyboard.press('ArrowRight');
  await expect(lab.page.locator(':focus')).toHaveAttribute('aria-expanded', 'true');
  await lab.page.keyboard.press('t');
  await expect(lab.section('Clusters').getByRole('treegrid')).toContainText('jitlab cannot compile it');
});

test('no text is small, and nothing scrolls sideways, in any theme and width', async ({ lab }) => {
  await lab.has('live.ipynb', 'load', 'softmax');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  for (const theme of ['JupyterLab Light', 'JupyterLab Dark', 'JupyterLab Dark High Contrast']) {
    await lab.page.evaluate(
      name => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name }),
      theme
    );
    await expect(lab.page.locator('body')).toHaveAttribute('data-jp-theme-name', theme);
    for (const width of [240, 380, 560]) {
      await lab.panel.evaluate((element, pixels) => {
        element.style.width = `${pixels}px`;
      }, width);
      await expect.poll(() => lab.panel.evaluate(element => element.scrollWidth - element.clientWidth)).toBeLessThan(1);
      expect(await lab.panel.evaluate(smallOrFaint), `${theme}, ${width} pixels`).toEqual([]);
    }
  }
  await lab.page.evaluate(() =>
    window.jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Light' })
  );
  await lab.panel.evaluate(element => {
    element.style.width = '';
  });
});

test('what changed can be read beside a long name, and below one in a narrow panel', async ({ lab }) => {
  const leaf = 'params["encoder"]["layer_12"]["self_attention"]["query_projection"]["kernel"]';
  const report = savedReport('leaf', ['y = 2*x + 1'], 'Mul');
  const [before, after] = ['float64[4, 6]', 'float32[4, 6]'];
  const retrace = { function: 'step', trace: 2, cause: 'dtype', argument: leaf, before, after, text: '', fix: null };
  report.retraces = [{ ...retrace, lines: [], seconds: 0.1, first: false, calls: 1, compiled: 0 }];
  await lab.write('leaf.ipynb', notebookOf([reportCell('leaf', report)]));
  await lab.open('leaf.ipynb', { kernel: false });
  const retraces = await lab.unfold('Retraces');
  for (const width of [240, 380, 560]) {
    await lab.panel.evaluate((element, pixels) => {
      element.style.width = `${pixels}px`;
    }, width);
    for (const shown of [retraces.locator('.jl-old'), retraces.locator('.jl-new')]) {
      expect((await shown.boundingBox())?.height, `${width} pixels`).toBeLessThan(24); // one line
    }
  }
  await lab.panel.evaluate(element => {
    element.style.width = '';
  });
});

test('a cell that still runs says so, and none of its events is lost', async ({ lab }) => {
  await lab.has('live.ipynb', 'load');
  await lab.start('slow');
  await expect(lab.panel).toHaveAttribute('data-running', 'true');
  await expect(lab.panel.getByRole('progressbar')).toBeVisible();
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await expect(lab.page.locator('.jp-mod-active .jl-badge'), 'the badge is live, too').toContainText('21/22 compiled');
  await lab.letGo();
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
  await expect(lab.panel).toHaveAttribute('data-events', '5001');
});

test('a click is not lost to a report that comes while the button is down', async ({ lab }) => {
  await lab.has('live.ipynb', 'load');
  await lab.start('slow');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await lab.unfold('Retraces');
  await lab
    .section('Retraces')
    .getByRole('button', { name: /^Retraces/ })
    .click();
  const heading = lab.section('Retraces').getByRole('button', { name: /^Retraces/ });
  await expect(heading).toHaveAttribute('aria-expanded', 'false');
  await lab.section('Verdict').getByRole('button', { name: 'retraces' }).hover();
  await lab.page.mouse.down();
  await lab.letGo();
  await expect.poll(() => lab.debugState()).toMatchObject({ running: false });
  await lab.page.mouse.up();
  await expect(heading).toHaveAttribute('aria-expanded', 'true');
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
});

test('a closed panel gets no messages, and what it missed when it is shown again', async ({ lab }) => {
  await lab.open('live.ipynb');
  await lab.restartKernel(); // what the panel knows of an earlier run is not live any more
  await lab.run('load', 'line');
  await expect(lab.panel).toContainText('All 2 operations compiled');
  await expect(lab.panel).toHaveAttribute('data-origin', 'live'); // the file alone says as much, too
  await lab.page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-right-area'));
  await expect(lab.panel).toBeHidden();
  await lab.quiet();
  const before = await lab.debugState();
  await lab.run('softmax');
  expect(await lab.debugState()).toMatchObject({ events: before.events, last: before.last });
  await lab.page.evaluate(() => window.jupyterapp.commands.execute('jitlab:open-panel'));
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
});

test('a reload brings everything back without running anything', async ({ lab }) => {
  await lab.has('live.ipynb', 'load', 'softmax');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await lab.reload();
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await expect(await lab.unfold('Retraces')).toContainText('lr changed 5 times');
  expect(await lab.clusterNames()).toEqual(['cluster_0', 'ArgPartition', 'cluster_1']);
});

test('a reload in the midst of a run shows it at once, and every event in the end', async ({ lab }) => {
  await lab.has('live.ipynb', 'load');
  await lab.save();
  await lab.start('slow');
  await expect(lab.panel).toHaveAttribute('data-running', 'true');
  await lab.reload({ busy: true });
  await expect(lab.panel).toHaveAttribute('data-running', 'true');
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  await expect(lab.panel).toContainText('21 of 22 operations compiled');
  await lab.letGo();
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
  await expect(lab.panel).toHaveAttribute('data-events', '5001');
});

test('a restart keeps the figures, says that they are old, and a new run replaces them', async ({ lab }) => {
  await lab.has('live.ipynb', 'load', 'softmax');
  await expect(lab.panel).toHaveAttribute('data-cell', 'softmax'); // after a reload reports come one after the other
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  await lab.restartKernel();
  await expect(lab.panel).toHaveAttribute('data-origin', 'previous');
  await expect(lab.panel).toContainText(
    'From before the restart. Run %load_ext jitlab, then the cell to measure again.'
  );
  await expect(await lab.unfold('Retraces')).toContainText('lr changed 5 times');
  await lab.run('load', 'softmax');
  await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  await expect(lab.panel).not.toContainText('From before the restart');
});

test('a saved notebook shows its reports without a kernel', async ({ lab }) => {
  await lab.open('saved.ipynb', { kernel: false });
  await expect(lab.panel).toHaveAttribute('data-origin', 'saved');
  await expect(lab.panel).toContainText('All 2 operations compiled');
  expect(await lab.clusterNames()).toEqual(['cluster_0']);
  await expect(lab.page.locator('.jp-OutputArea .jl-output')).toContainText('All 2 operations compiled');
});

test('Notebook 7 shows the panel and the output', async ({ lab }) => {
  const seven = await lab.inNotebook7('seven.ipynb');
  await seven.run('load', 'softmax');
  await expect(seven.page.locator('.jp-mod-active .jl-output')).toContainText('21 of 22 operations compiled');
  await expect(seven.panel).toBeVisible();
  await expect(seven.panel).toHaveAttribute('data-origin', 'live');
  await expect(seven.panel).toContainText('21 of 22 operations compiled');
  await seven.page.close();
});

test('an output out of sight has the colours of the theme that was chosen meanwhile', async ({ lab }) => {
  const copies = Array.from({ length: 12 }, (_, index) =>
    reportCell(`copy${index}`, savedReport(`copy${index}`, ['y = 2*x + 1'], 'cluster_0'))
  );
  await lab.write('copies.ipynb', notebookOf(copies));
  await lab.open('copies.ipynb', { kernel: false });
  await lab.theme('JupyterLab Light');
  await lab.scrollTo('copy11'); // the outputs on the way have been drawn
  const strips = lab.page.locator('.jp-Notebook .jl-output .jl-verdict canvas:first-of-type');
  await expect.poll(() => strips.count()).toBeGreaterThan(4);
  await lab.scrollTo('copy0');
  await expect.poll(() => strips.evaluateAll(inks)).toEqual(['0,103,165']);
  await lab.theme('JupyterLab Dark');
  await expect.poll(() => strips.evaluateAll(inks)).toEqual(['98,180,245']);
  await lab.theme('JupyterLab Light');
});

/** The colours of the first cells of strips, each once. */
function inks(canvases: Element[]): string[] {
  const found = canvases.map(canvas => {
    const context = (canvas as HTMLCanvasElement).getContext('2d');
    return context?.getImageData(4, 6, 1, 1).data.slice(0, 3).join(',') ?? '';
  });
  return [...new Set(found)];
}

const SCRIPTS = /extensions\/jitlab\/static\/.*\.js/;

/** The bytes of each script of jitlab's that the page asks for meanwhile. */
async function scriptsOf(lab: Lab, meanwhile: () => Promise<unknown>): Promise<number[]> {
  const asked = new Set<string>();
  const note = (request: Request): void => {
    if (SCRIPTS.test(request.url())) {
      asked.add(request.url());
    }
  };
  lab.page.on('request', note);
  await meanwhile();
  lab.page.off('request', note);
  const answers = await Promise.all([...asked].map(url => lab.page.request.get(url)));
  return Promise.all(answers.map(async answer => (await answer.body()).length));
}
