import { expect } from '@playwright/test';
import { findings, smallOrFaint } from './access';
import { fold, type Lab, SECTIONS, test, unfold } from './lab';

/** Roles, names, states and contrast by axe; the rest of what a screen reader needs by what it would say. */
test.describe('access @long', () => {
  const THEMES = ['JupyterLab Light', 'JupyterLab Dark', 'JupyterLab Dark High Contrast'];

  async function everySection(lab: Lab, selector: string, themes = THEMES): Promise<void> {
    const root = lab.page.locator(selector);
    for (const theme of themes) {
      await lab.theme(theme);
      for (const title of SECTIONS) {
        const section = root.getByRole('region', { name: title, exact: true });
        await unfold(section);
        expect(await findings(lab.page, selector), `${title}, ${theme}`).toEqual([]);
        const table = section.getByRole('button', { name: 'Show as a table' });
        if (await table.count()) {
          await table.click();
          expect(await findings(lab.page, selector), `${title} as a table, ${theme}`).toEqual([]);
          await table.click();
        }
        await fold(section);
      }
    }
    await lab.theme('JupyterLab Light');
  }

  test('each section, as a picture and as a table, in each theme', async ({ lab }) => {
    await lab.has('explained.ipynb', 'load', 'setup', 'step', 'use');
    await expect(lab.panel).toHaveAttribute('data-origin', 'live');
    await everySection(lab, '#jitlab-panel');
    const live = lab.panel.locator('[aria-live=polite]');
    await expect(live).toHaveText(/^In \[\d+\]: \d+ of \d+ operations compiled|^In \[\d+\]: All /);
    await expect(lab.page.locator('#jitlab-panel [aria-live=polite]')).toHaveCount(1);
  });

  test('the view in the main area, in each theme', async ({ lab }) => {
    await lab.has('explained.ipynb', 'load', 'setup', 'step', 'use');
    await lab.page.setViewportSize({ width: 2000, height: 1000 });
    await lab.command('jitlab:open-in-main-area');
    await expect(lab.page.locator('.jl-main')).toHaveAttribute('data-cell', 'use');
    for (const theme of THEMES) {
      await lab.theme(theme);
      expect(await findings(lab.page, '.jl-main'), theme).toEqual([]);
      expect(await lab.page.locator('.jl-main').evaluate(smallOrFaint), theme).toEqual([]);
    }
    await lab.page.setViewportSize({ width: 1400, height: 900 });
    for (const theme of THEMES) {
      await lab.theme(theme);
      expect(await findings(lab.page, '.jl-main'), `${theme}, as tabs`).toEqual([]);
    }
    await lab.theme('JupyterLab Light');
    await lab.command('application:close');
  });

  test('Notebook 7, each section in each theme', async ({ lab }) => {
    const seven = await lab.inNotebook7('shell7.ipynb');
    await seven.run('load', 'compiled');
    await expect(seven.panel).toHaveAttribute('data-cell', 'compiled');
    await everySection(seven, '#jitlab-panel');
    expect(await findings(seven.page, '.jl-badge-line')).toEqual([]);
    await seven.page.close();
  });

  test('with reduced motion nothing fades and nothing moves', async ({ lab }) => {
    await lab.has('live.ipynb', 'load', 'softmax');
    await lab.page.emulateMedia({ reducedMotion: 'reduce' });
    await lab.start('slow');
    await expect(lab.panel).toHaveAttribute('data-running', 'true');
    const moving = await lab.panel.evaluate(panel =>
      [panel, ...panel.querySelectorAll('*')]
        .filter(element => {
          const { animationName, animationDuration, transitionDuration } = getComputedStyle(element);
          const lasts = (text: string): boolean => text.split(',').some(part => parseFloat(part) > 0);
          return (animationName !== 'none' && lasts(animationDuration)) || lasts(transitionDuration);
        })
        .map(element => `${element.tagName} ${element.getAttribute('class') ?? ''}`)
    );
    expect(moving).toEqual([]);
    await lab.letGo();
    await expect(lab.panel).toHaveAttribute('data-running', 'false');
    await lab.page.emulateMedia({ reducedMotion: null });
  });
});
