import { ClustersView } from './clusters/view';
import { CodeView } from './code/view';
import { CompareView } from './compare/view';
import { RetracesView } from './retraces/view';
import type { SectionKind } from './section';
import { TimelineView } from './timeline/view';
import { WhatIfView } from './whatif/view';

/** The panel's sections below the verdict, in their order: Clusters, Code, Retraces, Timeline, What-if, Compare. */
export const SECTIONS: readonly SectionKind[] = [
  { title: 'Clusters', table: true, make: (section, context) => new ClustersView(section, context) },
  { title: 'Code', table: false, make: (section, context) => new CodeView(section, context) },
  { title: 'Retraces', table: false, make: (section, context) => new RetracesView(section, context) },
  { title: 'Timeline', table: true, make: (section, context) => new TimelineView(section, context) },
  { title: 'What-if', table: true, asks: true, make: (section, context) => new WhatIfView(section, context) },
  { title: 'Compare', table: true, asks: true, make: (section, context) => new CompareView(section, context) }
];
