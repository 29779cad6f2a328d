import { expect } from '@playwright/test';
import { join } from 'node:path';
import { type Lab, test } from './lab';

/** `make screenshots` puts the pictures of README and docs here. */
const IMAGES = join(__dirname, '../../docs/images');

test('the pictures of the documentation', async ({ lab }) => {
  const { page } = lab;
  await lab.open('notebooks/01-softmax-regression.ipynb');
  await page.evaluate(() => window.jupyterapp.commands.execute('application:toggle-left-area'));
  await lab.runThrough('train');
  await expect(lab.panel).toHaveAttribute('data-cell', 'train');
  await expect(lab.panel).toHaveAttribute('data-running', 'false');
  await lab.widen(560);
  await page.mouse.move(2, 2);
  await page.locator('.jp-Cell.jp-mod-active').scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(IMAGES, 'panel.png') });

  const output = await lab.htmlOutput('jit');
  await page.setViewportSize({ width: 800, height: 400 });
  expect(output).toContain('<svg');
  await page.setContent(`<body style="margin: 20px; background: #fff">${output}`);
  await page.screenshot({ path: join(IMAGES, 'saved-output.png'), fullPage: true });
});

const THEMES = { light: 'JupyterLab Light', dark: 'JupyterLab Dark' };
const SECTIONS = ['Verdict', 'Clusters', 'Code', 'Retraces', 'Timeline', 'What-if', 'Compare'];

test('the gallery: each section of the panel, in light and dark', async ({ lab }) => {
  const { page } = lab;
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.goto('/lab?reset');
  await lab.started();
  await lab.has('gallery.ipynb', 'load', 'softmax');
  await lab.widen(560);
  await lab.run('softmax', 'softmax', 'train');
  await lab.select('softmax');
  await expect(lab.panel).toHaveAttribute('data-cell', 'softmax');
  await openAll(lab);
  await lab.section('What-if').getByRole('button', { name: 'Sweep' }).click();
  await expect(lab.section('What-if').locator('[data-state=done]').first()).toBeVisible({ timeout: 120_000 });
  for (const [name, theme] of Object.entries(THEMES)) {
    await page.evaluate(
      wanted => window.jupyterapp.commands.execute('apputils:change-theme', { theme: wanted }),
      theme
    );
    await expect(page.locator('body')).toHaveAttribute('data-jp-theme-name', theme);
    for (const title of SECTIONS) {
      await lab.select(title === 'Retraces' ? 'train' : 'softmax');
      await openAll(lab);
      await page.setViewportSize({ width: 1400, height: 2000 });
      await lab.section(title).screenshot({ path: join(IMAGES, `${title.toLowerCase()}-${name}.png`) });
      await page.setViewportSize({ width: 1400, height: 900 });
    }
  }
});

async function openAll(lab: Lab): Promise<void> {
  const closed = lab.panel.locator('.jl-fold[aria-expanded=false]');
  while (await closed.count()) {
    await closed.first().click();
  }
}
