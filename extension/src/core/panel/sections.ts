import { ClustersView } from '../sections/clusters/view';
import { CodeView } from '../sections/code/view';
import { CompareView } from '../sections/compare/view';
import { RooflineView } from '../sections/roofline/view';
import { RetracesView } from '../sections/retraces/view';
import type { SectionKind } from './section';
import { TimelineView } from '../sections/timeline/view';
import { WhatIfView } from '../sections/whatif/view';

/** The panel's sections below the verdict, in their order. */
export const SECTIONS: readonly SectionKind[] = [
  { id: 'clusters', title: 'Clusters', key: '2', column: 1, table: true, view: ClustersView },
  { id: 'code', title: 'Code', key: '3', column: 0, view: CodeView },
  { id: 'retraces', title: 'Retraces', key: '4', column: 0, view: RetracesView },
  { id: 'timeline', title: 'Timeline', key: '5', column: 'dock', table: true, view: TimelineView },
  {
    ...{ id: 'what-if', title: 'What-if', key: '6', column: 2, table: true, view: WhatIfView },
    ...{ asks: true, jobs: ['whatif', 'sweep'] }
  },
  { id: 'compare', title: 'Compare', key: '7', column: 2, table: true, asks: true, view: CompareView },
  { id: 'roofline', title: 'Roofline', key: '8', column: 2, table: true, view: RooflineView }
];
