import { expect } from '@playwright/test';
import { join } from 'node:path';
import { test } from './lab';

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
