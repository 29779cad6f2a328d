import { INKS, type Ink, type Measure, type Type } from './shapes';

/** What a canvas needs to know of the page: the values of the inks, and the fonts. */
export interface Theme {
  inks: Record<Ink, string>;
  fonts: Record<Type, string>;
  /** How much of a cluster's ink its ground takes, 0 to 1. */
  tint: number;
}

/** Changes whenever the tokens do; a fraction of what reading all of them costs, which is felt when events come by the thousand. */
export function themeKey(element: HTMLElement): string {
  const style = getComputedStyle(element);
  const { jpThemeName, jpThemeLight } = document.body.dataset;
  const told = ['--jp-layout-color1', '--jp-ui-font-color1', '--jp-brand-color1', '--jp-border-color2', '--jl-c0'];
  const tokens = told.map(name => style.getPropertyValue(name));
  return [jpThemeName, jpThemeLight, style.color, style.fontFamily, ...tokens].join('|');
}

/** Reads the tokens of style/index.css as they are resolved at `element`. */
export function readTheme(element: HTMLElement): Theme {
  const probe = element.ownerDocument.createElement('span');
  probe.style.display = 'none';
  element.append(probe);
  const style = getComputedStyle(probe);
  const inks = Object.fromEntries(
    INKS.map(ink => {
      probe.style.color = `var(--jl-${ink})`;
      return [ink, style.color];
    })
  ) as Record<Ink, string>;
  const family = style.fontFamily || 'sans-serif';
  const tint = parseFloat(style.getPropertyValue('--jl-tint')) / 100;
  probe.remove();
  return {
    inks,
    fonts: {
      lead: `600 15px ${family}`,
      name: `600 12px ${family}`,
      body: `400 12px ${family}`,
      note: `400 11px ${family}`
    },
    tint: Number.isNaN(tint) ? 0.05 : tint
  };
}

export function canvasMeasure(context: CanvasRenderingContext2D, theme: Theme): Measure {
  // One map a type: a key put together anew for each question takes longer than the answer.
  const known = new Map<Type, Map<string, number>>();
  return (text, type) => {
    let widths = known.get(type);
    if (!widths) {
      widths = new Map();
      known.set(type, widths);
    }
    let width = widths.get(text);
    if (width === undefined) {
      if (widths.size > 10_000) {
        widths.clear();
      }
      context.font = theme.fonts[type];
      width = context.measureText(text).width;
      widths.set(text, width);
    }
    return width;
  };
}

/**
 * Calls back when JupyterLab has changed its theme; returns the function that ends it. JupyterLab hides itself for a frame
 * as it changes: what is asked of a view then has no width, and an output out of sight is not told when it has one again.
 */
export function watchTheme(changed: () => void): () => void {
  const observer = new MutationObserver(() => inTwoFrames(changed));
  observer.observe(document.body, { attributes: true, attributeFilter: ['data-jp-theme-name', 'data-jp-theme-light'] });
  return () => observer.disconnect();
}

export function inTwoFrames(act: () => void): void {
  requestAnimationFrame(() => requestAnimationFrame(act));
}
