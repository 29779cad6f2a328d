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

/** Texts below 11 pixels or below a contrast of 4.5 : 1. */
export function smallOrFaint(panel: Element): string[] {
  const rgb = (color: string): number[] => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) {
      return [0, 0, 0, 0];
    }
    context.fillStyle = color;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const light = (color: number[]): number => {
    const [red = 0, green = 0, blue = 0] = color.map(value => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const groundOf = (element: Element | null): number[] => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if ((color[3] ?? 0) > 250) {
        return color;
      }
    }
    return [255, 255, 255];
  };
  const found: string[] = [];
  const walker = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!element || !node.textContent?.trim() || element.getClientRects().length === 0) {
      continue;
    }
    const style = getComputedStyle(element);
    const [high = 0, low = 0] = [light(rgb(style.color)), light(groundOf(element))].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    if (parseFloat(style.fontSize) < 11 || contrast < 4.5) {
      found.push(`${node.textContent} ${style.fontSize} ${contrast.toFixed(1)}`);
    }
  }
  return found;
}
