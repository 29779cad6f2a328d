import type { Key } from './keys';
import type { KernelAccess } from '../report/kernel';
import type { Busy, CellState } from '../report/model';
import type { MenuItem } from '../base/popup';
import type { Selection } from './selection';
import type { Settings } from './settings';

/** All that the panel is told. */
export interface PanelState {
  notebook: string;
  /** Undefined where nothing is known of a cell. */
  cell: CellState | undefined;
  /** Whether the kernel has jitlab loaded; null while nobody knows, and for an output that needs no kernel. */
  loaded: boolean | null;
  /** The cell's source as it stands now; null where it can't have changed. */
  source: string[] | null;
  /** Another cell of the notebook that has a report. */
  other: { id: string; title: string; lead: string } | null;
  pinned: boolean;
  /** Nothing has run here yet: all reports are those that the notebook keeps, and `other` is the nearest of them. */
  isSaved?: boolean;
  /** The cell is shown in the place of the active one, which has no saved report. */
  instead?: boolean;
  /** Of which run a saved report is, as `savedText` has it. */
  saved?: string;
  /** Events that are recorded and not here yet. */
  behind?: number;
  /** How far the compiler is in the cell that runs, and what leaves the rest of it to Python, until that is done. */
  underway?: { title: string; cancel: (() => void) | null } | null;
  /** Another cell that runs in the same kernel. */
  busy?: Busy | null;
}

/** What the host lends the panel. What is optional is not everywhere: the panel leaves it out. */
export interface PanelActions {
  /** The kernel that made the report that is shown; null: a saved report, or no kernel. */
  readonly kernel: KernelAccess | null;
  goTo(cell: string, line?: number): void;
  /** Goes to a line of what was compiled, wherever it stands now. */
  goToLine?: (file: string, line: number) => void;
  /** Runs a cell of the notebook once; whether it ended well. */
  runCell?: (cell: string) => Promise<boolean>;
  togglePin(): void;
  /** Gives the keyboard back to the notebook. */
  leave(): void;
  /** Opens the whole panel (null) or a section of it where there is more room. */
  readonly main?: { label: string; sections: boolean; open(section: string | null): void };
  menu?: () => MenuItem[];
  readonly settings?: Settings;
  /** Runs the command that a key stands for; whether one had it. */
  runKey?: (event: KeyboardEvent) => boolean;
  /** What a key is now. */
  nameOf?: (key: Key) => string;
  /** Which sections of a notebook were open, kept by the host: `null` asks. */
  keep?: (notebook: string, open: readonly string[] | null) => readonly string[] | null;
}

export interface PanelOptions {
  /** Shared with other views: what is pointed at in one lights up in the others. */
  selection?: Selection;
  /** In the main area: columns, or one section alone. */
  main?: { only: string | null };
}
