import { readFile } from 'node:fs/promises';
import { expect, type Locator } from '@playwright/test';
import { test, unfold } from './lab';

/** The graph and the timeline by keyboard and pointer, on one page: the report is the stand-in's, the panel is real. */
test('a graph is opened in place, searched, turned into a table and a map; a timeline is walked and kept', async ({
  lab
}) => {
  await lab.has('live.ipynb', 'load', 'softmax');
  const { page } = lab;
  const clusters = lab.section('Clusters');
  const timeline = lab.section('Timeline');
  const item = (name: RegExp): Locator => clusters.getByRole('treeitem', { name });
  const focused = page.locator(':focus');

  await test.step('a box that is opened keeps its place', async () => {
    await unfold(clusters);
    const box = item(/^cluster_1, lines 8–11/);
    await box.scrollIntoViewIfNeeded();
    const before = await box.boundingBox();
    await box.dblclick();
    await expect(box).toHaveAttribute('aria-expanded', 'true');
    const after = await box.boundingBox();
    expect(Math.abs((after?.y ?? 1e9) - (before?.y ?? 0))).toBeLessThan(2);
    await expect(item(/^RealDiv, line 9/).first()).toBeAttached();
  });

  await test.step('/ searches, and goes to what was chosen', async () => {
    await item(/^cluster_0/).focus();
    await page.keyboard.press('/');
    await expect(focused).toHaveAttribute('type', 'search');
    await page.keyboard.type('exp');
    await page.keyboard.press('Enter');
    await expect(clusters.getByRole('status').last()).toContainText('Pinned: Exp, line 5');
    await expect(focused).toHaveAttribute('aria-label', /^Exp, line 5/);
    await clusters.getByRole('button', { name: 'to the line' }).click();
    await expect(page.locator('.jp-mod-active .cm-content')).toBeFocused();
    await clusters.getByRole('treeitem', { name: /^Exp, line 5/ }).focus();
    await page.keyboard.press('Escape');
  });

  await test.step('N goes to the next value that is not fused, and around', async () => {
    await item(/^cluster_0/).focus();
    await page.keyboard.press('n');
    await expect(focused).toHaveAttribute('aria-label', /^Not fused: p is stored/);
    const first = await focused.getAttribute('data-id');
    await page.keyboard.press('n');
    await expect(focused).not.toHaveAttribute('data-id', first ?? '');
  });

  await test.step('M is a map and back, T a table and back', async () => {
    await page.keyboard.press('m');
    await expect(clusters.getByRole('button', { name: 'Show as a map' })).toHaveAttribute('aria-pressed', 'true');
    await expect(clusters.getByRole('tree', { name: 'Graph, boxes in program order' })).toBeVisible();
    await item(/^cluster_0/).focus();
    for (const key of ['Enter', '+', '+', '+', '+', '+', '+', '+']) {
      await page.keyboard.press(key);
    }
    await expect(clusters.locator('.jl-minimap-frame')).toBeVisible();
    await clusters.getByRole('button', { name: 'Show as a map' }).click();
    await clusters.getByRole('button', { name: 'Show as a map' }).press('t');
    await expect(clusters.getByRole('treegrid')).toContainText('cluster_0');
    await clusters.getByRole('button', { name: 'Show as a table' }).click();
    await expect(item(/^cluster_0/)).toBeVisible();
  });

  await test.step('the timeline is zoomed, walked and fitted by its keys, and a stretch of it is added up', async () => {
    await unfold(timeline);
    const picture = timeline.locator('canvas').first();
    await picture.focus();
    await page.keyboard.press('.');
    await expect(timeline).toContainText('starts at');
    for (const key of ['w', 'w', 'd', 'f', 'r']) {
      await page.keyboard.press(key);
    }
    await expect(timeline).toContainText(/Selected .* to /);
    const box = await picture.boundingBox();
    const { x, y, width } = box ?? { x: 0, y: 0, width: 0 };
    await page.mouse.move(x + 0.3 * width, y + 20);
    await page.mouse.down();
    await page.mouse.move(x + 0.8 * width, y + 20, { steps: 4 });
    await page.mouse.up();
    await expect(timeline).toContainText(/Selected .* to /);
  });

  await test.step('a Chrome trace is a file that can be read', async () => {
    const download = page.waitForEvent('download');
    await timeline.getByRole('button', { name: /Chrome trace/ }).click();
    const path = await (await download).path();
    const trace = JSON.parse(await readFile(path, 'utf8')) as { traceEvents: { ph: string; dur?: number }[] };
    expect(trace.traceEvents.some(({ ph, dur }) => ph === 'X' && (dur ?? 0) > 0)).toBe(true);
  });
});
