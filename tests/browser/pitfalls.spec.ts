import { expect, type Locator } from '@playwright/test';
import { smallOrFaint } from './access';
import { Lab, SECTIONS, test } from './lab';
import { codeCell, notebookOf, reportCell, savedReport } from './notebooks';

/** What has gone wrong for others who live beside a notebook: each of these happened to a tool that people use. */
test.describe('pitfalls @long', () => {
  test('a restart while a cell runs: the run is over, its figures are old, the next run is live', async ({ lab }) => {
    await lab.has('live.ipynb', 'load');
    await lab.start('slow');
    await expect(lab.panel).toHaveAttribute('data-running', 'true');
    await lab.restartKernel();
    await expect(lab.panel).toHaveAttribute('data-origin', 'previous');
    await expect(lab.panel).toHaveAttribute('data-running', 'false');
    await lab.run('load', 'line');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await expect(lab.panel).toContainText('All 2 operations compiled');
  });

  test('an interrupt ends the run, says so, and the cell runs again as it did', async ({ lab }) => {
    await lab.has('shell.ipynb', 'load', 'compiled');
    await lab.setSource(
      'plain',
      '%%jit\nimport time\nhalf = X * 0.5\ntime.sleep(600 if wait else 0)\nall = half + half'
    );
    await lab.setSource('called', 'wait = True');
    await lab.run('called');
    await lab.start('plain');
    await expect(lab.panel).toHaveAttribute('data-running', 'true');
    await lab.interruptKernel();
    await expect(lab.cell('plain')).toContainText('KeyboardInterrupt');
    await expect(lab.panel).toHaveAttribute('data-running', 'false');
    await expect(lab.panel).toHaveAttribute('data-cell', 'plain');
    await expect(lab.panel).toContainText('KeyboardInterrupt');
    await lab.setSource('called', 'wait = False');
    await lab.run('called', 'plain');
    await expect(lab.panel).toHaveAttribute('data-cell', 'plain');
    await expect(lab.panel).toContainText('2 operations compiled');
    await expect(lab.panel).not.toContainText('KeyboardInterrupt');
  });

  test('a notebook that gets another kernel shows what that one says, and marks what the first one said', async ({
    lab
  }) => {
    await lab.has('live.ipynb', 'load', 'softmax');
    const first = await lab.kernelId();
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await lab.changeKernel({ name: 'python3' });
    expect(await lab.kernelId()).not.toBe(first);
    await expect(lab.panel).toHaveAttribute('data-origin', 'previous');
    await expect.poll(() => lab.debugState()).toMatchObject({ loaded: false });
    await lab.run('load', 'softmax');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  });

  test('two tabs on one kernel: both follow it, and one that is hidden silences only itself', async ({ lab }) => {
    await lab.has('live.ipynb', 'load', 'softmax');
    await lab.save();
    const page = await lab.page.context().newPage();
    const other = new Lab(page);
    await page.goto('lab/workspaces/second?reset');
    await other.started();
    await other.open('live.ipynb');
    await other.showPanel();
    expect(await other.kernelId()).toBe(await lab.kernelId());
    await other.select('softmax');
    await expect(other.panel).toHaveAttribute('data-origin', 'live');
    await lab.run('line');
    await other.select('line');
    await expect(other.panel).toContainText('All 2 operations compiled');
    await expect(lab.panel).toContainText('All 2 operations compiled');

    await other.command('application:toggle-right-area');
    await expect.poll(() => other.debugState()).toMatchObject({ shown: false });
    await lab.run('softmax');
    await expect(lab.panel).toContainText('21 of 22 operations compiled');
    await expect(lab.panel).toHaveAttribute('data-running', 'false');
    await other.command('jitlab:open-panel');
    await other.select('softmax');
    await expect(other.panel).toHaveAttribute('data-origin', 'live');
    await expect.poll(async () => (await other.debugState()).last === (await lab.debugState()).last).toBe(true);
    await page.close();
  });

  test('two notebooks on one kernel: the second shows what its cells put out', async ({ lab }) => {
    await lab.openNew('live.ipynb');
    await lab.run('load');
    const kernel = await lab.kernelId();
    await lab.openBeside('seven.ipynb');
    await lab.changeKernel({ id: kernel });
    await lab.run('softmax');
    await expect(lab.panel).toHaveAttribute('data-cell', 'softmax');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await lab.activate('live.ipynb');
    await lab.run('line');
    await expect(lab.panel).toContainText('All 2 operations compiled');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await lab.openNew('live.ipynb');
  });

  test('a cell that is split keeps marks where its lines are, and the split can be undone', async ({ lab }) => {
    await lab.openNew('shell.ipynb');
    await lab.run('load', 'compiled');
    const marks = lab.page.locator('.jp-Notebook .jl-selvage');
    await expect(marks.first()).toBeVisible();
    const before = await marks.count();
    const badges = lab.page.locator('.jp-Notebook .jl-badge');
    await expect(lab.cell('compiled').locator('.jl-badge')).toBeVisible();
    const shown = await badges.count(); // cells that tests before this one ran have theirs
    await lab.cell('compiled').locator('.cm-line', { hasText: 'np.exp(z)' }).click();
    await lab.command('notebook:split-cell-at-cursor');
    await expect(badges).toHaveCount(shown);
    await expect(lab.panel).toContainText(/older version of this cell/);
    await lab.command('notebook:undo-cell-action');
    await expect(badges).toHaveCount(shown);
    await expect(marks).toHaveCount(before);
    await lab.run('compiled');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
  });

  test('a notebook that is saved under another name shows what it keeps, and is followed with its own kernel', async ({
    lab
  }) => {
    await lab.has('live.ipynb', 'load', 'softmax');
    await lab.save();
    const saved = lab.command('docmanager:save-as');
    await lab.page.locator('.jp-Dialog input').fill('another.ipynb');
    await lab.page.locator('.jp-Dialog .jp-mod-accept').click();
    await saved;
    await expect.poll(() => lab.debugState()).toMatchObject({ notebook: 'another.ipynb' });
    await expect(lab.panel).toContainText('21 of 22 operations compiled');
    await lab.openNew('another.ipynb');
    await lab.select('softmax');
    await expect(lab.panel).toHaveAttribute('data-origin', 'saved');
    await lab.run('load', 'line');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await expect(lab.panel).toContainText('All 2 operations compiled');
    await lab.openNew('live.ipynb');
  });

  test('a notebook that can only be read is shown, followed, and not written to', async ({ lab }) => {
    const { page } = lab;
    await page.route('**/api/contents/shell.ipynb?*', async route => {
      const answer = await route.fetch();
      const model = (await answer.json()) as object;
      await route.fulfill({ response: answer, json: { ...model, writable: false } });
    });
    const writes: string[] = [];
    page.on('request', request => {
      if (request.method() === 'PUT' && request.url().includes('/api/contents/')) {
        writes.push(request.url());
      }
    });
    await lab.openNew('shell.ipynb');
    await expect(page.locator('.jp-Toolbar').getByText('read-only', { exact: false }).first()).toBeVisible();
    await lab.run('load', 'compiled');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await expect(lab.cell('compiled').locator('.jl-badge')).toHaveText(/compiled/);
    await expect(lab.cell('compiled').locator('.jl-selvage').first()).toBeVisible();
    expect(writes).toEqual([]);
    await page.unroute('**/api/contents/shell.ipynb?*');
    await lab.openNew('live.ipynb');
  });

  test('a notebook of a stranger is shown without trust, and nothing in it is run', async ({ lab }) => {
    const evil = `<img src=x onerror="window.harmed=1"><script>window.harmed=1</script></title></style>`;
    const report = savedReport('stranger', [`y = 2*x + 1  # ${evil}`], evil);
    await lab.write('stranger.ipynb', notebookOf([reportCell('stranger', report, `<b>kept</b>${evil}`)]));
    await lab.openNew('stranger.ipynb');
    await lab.select('stranger');
    await expect(lab.panel).toHaveAttribute('data-origin', 'saved');
    await expect(
      lab
        .section('Clusters')
        .getByRole('treeitem', { name: /onerror/ })
        .first()
    ).toBeVisible();
    await expect(lab.page.locator('.jp-OutputArea .jl-output')).toContainText('operations compiled');
    for (const title of ['Clusters', 'Code', 'Retraces', 'Timeline']) {
      await lab.unfold(title);
    }
    await lab.section('Clusters').locator('[data-kind=cluster]').first().dblclick();
    await lab.section('Clusters').locator('[data-kind=cluster]').first().hover();
    const harmed = await lab.page.evaluate(() => 'harmed' in window);
    expect(harmed).toBe(false);
    await expect(lab.panel.locator('img[src=x], script')).toHaveCount(0);
  });

  test('five thousand cells: the panel follows, and a cell that runs has its badge', async ({ lab }) => {
    const cells = Array.from({ length: 5000 }, (_, number) =>
      number % 50 === 0
        ? reportCell(`c${number}`, savedReport(`c${number}`, [`y = 2*x + ${number}`], 'mul'))
        : codeCell(`c${number}`, `value = ${number}`)
    );
    const plugin = '@jupyterlab/notebook-extension:tracker';
    await lab.setting(plugin, { windowingMode: 'full' }); // in its default mode JupyterLab takes minutes for so many
    await lab.write('many.ipynb', notebookOf([codeCell('load', 'import stand_in\nstand_in.load();'), ...cells]));
    const opened = await seconds(() => lab.openNew('many.ipynb'));
    const reports = await seconds(async () => {
      await lab.select('c4950');
      await expect(lab.panel).toHaveAttribute('data-cell', 'c4950');
    });
    const moved = await lab.page.evaluate(async () => {
      const { content } = window.jupyterapp.shell.currentWidget;
      const start = performance.now();
      for (let index = 100; index < 120; index++) {
        content.activeCellIndex = index;
        await new Promise(requestAnimationFrame);
      }
      return (performance.now() - start) / 20;
    });
    await lab.run('load');
    await lab.setSource('c4990', "stand_in.show('line')");
    await lab.run('c4990');
    await expect(lab.panel).toHaveAttribute('data-cell', 'c4990');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await expect(async () => {
      await lab.scrollTo('c4990'); // where the heights of 4 990 cells are still guessed, it ends somewhere near
      await expect(lab.cell('c4990').locator('.jl-badge')).toHaveText(/2\/2 compiled/, { timeout: 2000 });
    }).toPass();
    console.log(
      `5 000 cells, 100 with reports: open ${opened.toFixed(1)} s, the panel at the last report after ` +
        `${reports.toFixed(2)} s, a move of the active cell ${moved.toFixed(0)} ms`
    );
    await lab.setting(plugin, {});
    await lab.openNew('live.ipynb');
  });

  test('a notebook of 50 MB opens, shows its reports, and runs', async ({ lab }) => {
    const big = { output_type: 'display_data', metadata: {}, data: { 'text/plain': 'x'.repeat(5_000_000) } };
    const cells = Array.from({ length: 10 }, (_, number) => ({
      ...codeCell(`big${number}`, '1'),
      outputs: [{ ...big, data: { 'application/x-unknown': big.data['text/plain'], 'text/plain': '…' } }]
    }));
    const report = reportCell('kept', savedReport('kept', ['y = 2*x + 1'], 'mul'));
    const load = codeCell('load', 'import stand_in\nstand_in.load();');
    await lab.write('big.ipynb', notebookOf([load, report, ...cells, codeCell('line', "stand_in.show('line')")]));
    const opened = await seconds(() => lab.openNew('big.ipynb'));
    await lab.select('kept');
    await expect(lab.panel).toHaveAttribute('data-origin', 'saved');
    await lab.run('load', 'line');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    console.log(`50 MB: open ${opened.toFixed(1)} s`);
    await lab.openNew('live.ipynb');
  });

  test('another theme is taken at once, by text, pictures, badges and marks', async ({ lab }) => {
    await lab.has('live.ipynb', 'load', 'softmax');
    await lab.unfold('Timeline');
    const canvas = lab.section('Timeline').locator('canvas').first();
    const pictures: string[] = [];
    for (const theme of ['JupyterLab Light', 'JupyterLab Dark', 'JupyterLab Dark High Contrast']) {
      await lab.theme(theme);
      await expect
        .poll(async () => {
          const picture = await canvas.evaluate((element: HTMLCanvasElement) => element.toDataURL());
          return pictures.includes(picture);
        })
        .toBe(false);
      pictures.push(await canvas.evaluate((element: HTMLCanvasElement) => element.toDataURL()));
      expect(await lab.panel.evaluate(smallOrFaint), theme).toEqual([]);
    }
    await lab.theme('JupyterLab Light');
  });

  test('at 200 % zoom everything can be reached, and nothing scrolls sideways', async ({ lab }) => {
    await lab.has('live.ipynb', 'load', 'softmax');
    const { page } = lab;
    const session = await page.context().newCDPSession(page);
    await session.send('Emulation.setDeviceMetricsOverride', {
      width: 700,
      height: 450,
      deviceScaleFactor: 2,
      mobile: false
    });
    await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
    for (const title of SECTIONS) {
      await lab.unfold(title);
    }
    expect(await lab.panel.evaluate(element => element.scrollWidth - element.clientWidth)).toBeLessThan(1);
    expect(await lab.panel.evaluate(smallOrFaint)).toEqual([]);
    expect(await smallTargets(lab.panel)).toEqual([]);
    for (const heading of await lab.panel.locator('h3 button').all()) {
      await heading.focus();
      await expect(heading).toBeInViewport();
    }
    await session.send('Emulation.clearDeviceMetricsOverride');
    await session.detach();
    await page.setViewportSize({ width: 1400, height: 900 });
    await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
  });
});

async function seconds(action: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await action();
  return (performance.now() - start) / 1000;
}

/** Buttons that are smaller than 22 pixels in one direction. */
function smallTargets(panel: Locator): Promise<string[]> {
  return panel.locator('button:visible').evaluateAll(buttons =>
    buttons
      .map(button => ({ button, box: button.getBoundingClientRect() }))
      .filter(({ box }) => box.width > 0 && (box.width < 22 || box.height < 18))
      .map(
        ({ button, box }) =>
          `${button.getAttribute('class') ?? ''} ${button.textContent} ${Math.round(box.width)} × ${Math.round(box.height)}`
      )
  );
}
