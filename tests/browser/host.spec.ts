import { expect, test } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const PAGE = readFileSync(join(__dirname, 'work/host.html'), 'utf-8');

interface Host {
  run(code: string): Promise<string>;
  show(id: string, element: Node): Promise<() => void>;
  end(): Promise<unknown>;
}

declare global {
  interface Window {
    host: Host;
  }
}

test('a host that is not JupyterLab shows the widget of jl.explorer, follows its runs, and takes it away', async ({
  page
}) => {
  const errors: string[] = [];
  page.on('pageerror', error => errors.push(error.message));
  await page.goto('static/style/index.css'); // of the kernels' own origin
  await page.setContent(PAGE);
  await expect(page.locator('body')).toHaveAttribute('data-ready', 'true');
  const run = (code: string): Promise<string> => page.evaluate(text => window.host.run(text), code);
  const id = await run(
    'import numpy as np, jitlab as jl\n' +
      'def step(x, k):\n    return np.exp(x * k).sum(axis=1)\n' +
      'box = jl.explorer(step, np.ones((500, 200)), 2.0)\n' +
      'print(box.views.view.model_id, end="")'
  );
  expect(id).toMatch(/^[0-9a-f]{32}$/);

  await page.evaluate(async model => {
    const [plain, shadow] = [document.createElement('div'), document.createElement('div')];
    document.querySelector('#widget')?.append(plain, shadow);
    const root = shadow.attachShadow({ mode: 'open' }); // as marimo shows widgets
    const inside = root.appendChild(document.createElement('div'));
    const [gone] = [await window.host.show(model, plain), await window.host.show(model, inside)];
    document.addEventListener('take-away', gone);
  }, id);
  const views = page.locator('#widget .jl');
  await expect(views).toHaveCount(2);

  const lead = async (): Promise<string> => run('print(box.run().data["verdict"]["lead"], end="")');
  const first = await lead();
  expect(first).toMatch(/^\d+ of \d+ operations compiled/);
  for (const view of [views.first(), views.last()]) {
    await expect(view.getByText(first).first()).toBeVisible();
    await expect(view.locator('[data-kind=cluster]').first()).toBeAttached();
    expect(await view.evaluate(element => getComputedStyle(element).fontSize), 'it has its own style').toBe('12px');
  }
  await run('box.level.value = "O0"');
  const second = await lead();
  await expect(views.first().getByText('2 kernels').or(views.first().getByText('3 kernels')).first()).toBeVisible();
  expect(second).toMatch(/compiled/);

  const frame = page.locator('#widget .jl-host').first();
  for (const [name, value, light] of [
    ['class', 'vscode-dark', 'false'],
    ['class', 'vscode-light', 'true'],
    ['data-vscode-theme-kind', 'vscode-high-contrast', 'false']
  ] as const) {
    await page.evaluate(
      ([attribute, kind]) => {
        document.body.className = '';
        document.body.setAttribute(attribute, kind);
      },
      [name, value] as const
    );
    await expect(frame).toHaveAttribute('data-jp-theme-light', light);
  }
  await page.evaluate(() => document.dispatchEvent(new Event('take-away')));
  await expect(page.locator('#widget > div').first().locator('.jl-host')).toHaveCount(0);
  await lead();
  await expect(views).toHaveCount(1);
  expect(errors).toEqual([]);
  await page.evaluate(() => window.host.end());
});
