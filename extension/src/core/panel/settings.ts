import { choice, record } from '../base/read';

/** What a user can choose; extension/schema/panel.json describes each. */
export interface Settings {
  badges: boolean;
  decorations: boolean;
  costs: boolean;
  openSections: readonly string[];
  colors: (typeof COLORS)[number];
  reducedMotion: boolean;
  announce: boolean;
  confirmWhatIf: boolean;
  openOnLoad: boolean;
  /** On first use; false once it was seen. */
  tour: boolean;
  /** Runs that the chooser lists. */
  runs: number;
}

const COLORS = ['theme', 'light', 'dark', 'high-contrast'] as const;

export const DEFAULTS: Settings = {
  badges: true,
  decorations: true,
  costs: true,
  openSections: ['Clusters'],
  colors: 'theme',
  reducedMotion: false,
  announce: true,
  confirmWhatIf: false,
  openOnLoad: true,
  tour: true,
  runs: 20
};

/** Settings from anywhere: what is of another type has its default. */
export function readSettings(value: unknown): Settings {
  const given = record(value);
  const known = Object.entries(DEFAULTS).map(([name, usual]: [string, unknown]) =>
    typeof given[name] === typeof usual ? [name, given[name]] : [name, usual]
  );
  const settings = Object.fromEntries(known) as unknown as Settings;
  const { openSections, runs } = settings;
  const sections = Array.isArray(openSections) ? openSections.filter(section => typeof section === 'string') : null;
  return {
    ...settings,
    openSections: sections ?? DEFAULTS.openSections,
    colors: choice(given.colors, COLORS),
    runs: Math.max(1, Number.isFinite(runs) ? runs : DEFAULTS.runs)
  };
}
