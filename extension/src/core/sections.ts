import { ClustersView } from './clusters/view';
import { RetracesView } from './retraces/view';
import type { SectionKind } from './section';
import { TimelineView } from './timeline/view';

/** The panel's sections below the verdict, in their order: Clusters, Code, Retraces, Timeline, What-if, Compare. */
export const SECTIONS: readonly SectionKind[] = [
  { title: 'Clusters', table: true, make: (section, context) => new ClustersView(section, context) },
  { title: 'Retraces', table: false, make: section => new RetracesView(section) },
  { title: 'Timeline', table: true, make: (section, { selection }) => new TimelineView(section, selection) }
];

/** Alt+1 to Alt+7 go to these, whether or not a report has something for each. */
export const TITLES = ['Verdict', 'Clusters', 'Code', 'Retraces', 'Timeline', 'What-if', 'Compare'] as const;
