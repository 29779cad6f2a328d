import { isRecord, number } from '../base/read';

/** What a user can choose; extension/schema/panel.json describes each. */
export interface Settings {
  badges: boolean;
  decorations: boolean;
  costs: boolean;
  openSections: readonly string[];
  colors: 'theme' | 'light' | 'dark' | 'high-contrast';
  reducedMotion: boolean;
  announce: boolean;
  confirmWhatIf: boolean;
  openOnLoad: boolean;
  /** Runs that the chooser lists. */
  runs: number;
}

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
  runs: 20
};

/** Settings from anywhere: what is of another type has its default. */
export function readSettings(value: unknown): Settings {
  const given = isRecord(value) ? value : {};
  const flag = (name: keyof Settings): boolean =>
    typeof given[name] === 'boolean' ? given[name] : (DEFAULTS[name] as boolean);
  const count = (name: keyof Settings): number => Math.max(1, number(given[name]) ?? (DEFAULTS[name] as number));
  const sections = given.openSections;
  const colors = ['theme', 'light', 'dark', 'high-contrast'] as const;
  return {
    badges: flag('badges'),
    decorations: flag('decorations'),
    costs: flag('costs'),
    openSections: Array.isArray(sections)
      ? sections.filter(section => typeof section === 'string')
      : DEFAULTS.openSections,
    colors: colors.find(name => name === given.colors) ?? DEFAULTS.colors,
    reducedMotion: flag('reducedMotion'),
    announce: flag('announce'),
    confirmWhatIf: flag('confirmWhatIf'),
    openOnLoad: flag('openOnLoad'),
    runs: count('runs')
  };
}
