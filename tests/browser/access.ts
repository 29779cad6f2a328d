import type { Page } from '@playwright/test';

interface Axe {
  run(context: string, options: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

/** What axe finds in a part of the page: roles, names, states, the order of headings, and the contrast of texts. */
export async function findings(page: Page, selector: string): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) {
    await page.addScriptTag({ path: require.resolve('axe-core/axe.min.js') });
  }
  return page.evaluate(async within => {
    const { axe } = window as unknown as { axe: Axe };
    const { violations } = await axe.run(within, {
      runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] },
      // The page's own landmarks and headings are JupyterLab's.
      rules: { region: { enabled: false }, 'heading-order': { enabled: false } }
    });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  }, selector);
}
