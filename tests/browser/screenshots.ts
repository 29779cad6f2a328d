import { expect } from '@playwright/test';
import { join } from 'node:path';
import { type Lab, SECTIONS, test } from './lab';

/** `make screenshots` puts the pictures of README and docs here. */
const IMAGES = join(__dirname, '../../docs/images');

test('the pictures of the documentation', async ({ lab }) => {
  const { page } = lab;
  await lab.open('notebooks/01-softmax-regression.ipynb');
  await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
  await lab.runThrough('train');
  await lab.run('train'); // the first run is told as one: it waits for the compiler
  await expect(lab.panel).toHaveAttribute('data-cell', 'train');
  await expect(lab.panel).toContainText('run 2');
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
  await lab.widen(560);
  await page.mouse.move(2, 2);
  await page.locator('.jp-Cell.jp-mod-active').scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(IMAGES, 'panel.png') });

  const output = await lab.htmlOutput('jit');
  await page.setViewportSize({ width: 800, height: 100 });
  expect(output).toMatch(/^<img[^>]*data:image\/svg\+xml/);
  await page.setContent(`<body style="margin: 20px; background: #fff">${output}`);
  await page.screenshot({ path: join(IMAGES, 'saved-output.png'), fullPage: true });
});

const THEMES = { light: 'JupyterLab Light', dark: 'JupyterLab Dark' };
/** So many runs of a cell that calls its kernels once are enough to compare them. */
const RUNS = 20;
const BASELINE = 'gather first';

test('the gallery: each section of the panel, in light and dark', async ({ lab }) => {
  test.setTimeout(600_000);
  const { page } = lab;
  page.setDefaultTimeout(60_000);
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.goto('lab?reset');
  await lab.started();
  await lab.has('gallery.ipynb', 'load', 'softmax');
  await lab.showPanel();
  await lab.widen(560);
  await lab.run(...repeated('softmax'));
  const compare = await lab.unfold('Compare');
  await compare.getByRole('button', { name: 'Pin as baseline' }).click();
  await compare.getByRole('textbox', { name: 'Name of the baseline' }).fill(BASELINE);
  await page.keyboard.press('Enter');
  await expect(compare.getByRole('combobox', { name: 'Compare with' })).toContainText(BASELINE);
  await lab.edit('softmax', source => source.replace(/^d = .*$/m, 'd = (p - Y)[hard] / len(rows)'));
  await lab.run(...repeated('softmax'));
  await lab.run('train');
  await lab.select('softmax');
  await expect(lab.panel).toHaveAttribute('data-cell', 'softmax');
  await openAll(lab);
  await compare.getByRole('combobox', { name: 'Compare with' }).selectOption({ label: `baseline “${BASELINE}”` });
  await expect(compare.getByRole('img', { name: /: whole cell/ })).toBeVisible();

  const whatif = lab.section('What-if');
  await whatif.getByRole('button', { name: 'Sweep' }).click();
  await expect(whatif.locator('[data-state=done]').first()).toContainText(/edge/, { timeout: 120_000 });
  await pinExp(lab);
  await page.keyboard.press('x');
  const card = lab.panel.getByRole('dialog', { name: /^np\.exp\(/ });
  await card
    .getByRole('button', { name: /^Split .* from / })
    .first()
    .click();
  await expect(whatif.locator('[data-state=done]')).toHaveCount(2, { timeout: 120_000 });
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
  for (const [name, theme] of Object.entries(THEMES)) {
    await lab.theme(theme);
    for (const title of ['Verdict', ...SECTIONS]) {
      await lab.select(title === 'Retraces' ? 'train' : 'softmax');
      await openAll(lab);
      await page.setViewportSize({ width: 1400, height: 2000 });
      if (title === 'Clusters' || title === 'Code') {
        await pinExp(lab);
      } else if (title === 'Timeline') {
        await lab.section(title).getByRole('application').focus();
        await page.keyboard.type('f.r'); // all of it, and a span selected: its totals stand below
      }
      await page.mouse.move(2, 2);
      await page.evaluate(() => {
        (document.activeElement as HTMLElement | null)?.blur();
      });
      await lab.section(title).screenshot({ path: join(IMAGES, `${title.toLowerCase()}-${name}.png`) });
      await page.setViewportSize({ width: 1400, height: 900 });
    }
  }
});

/** What is pinned is lit wherever it stands; the cluster that it is in is opened first. */
async function pinExp(lab: Lab): Promise<void> {
  const clusters = lab.section('Clusters');
  const exp = clusters.getByRole('treeitem', { name: /np\.exp\(/ }).first();
  if (!(await exp.isVisible())) {
    await clusters.locator('[data-kind=cluster]').first().dblclick();
  }
  await exp.focus();
  if ((await exp.getAttribute('aria-selected')) !== 'true') {
    await lab.page.keyboard.press('Enter');
  }
}

function repeated(cell: string): string[] {
  return Array.from({ length: RUNS }, () => cell);
}

async function openAll(lab: Lab): Promise<void> {
  const closed = lab.panel.locator('.jl-fold[aria-expanded=false]');
  while (await closed.count()) {
    await closed.first().click();
  }
}
