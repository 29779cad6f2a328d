import { summaryOf as clustersSummary } from '../sections/clusters/summary';
import { ledgerOf, ledgerSummary } from '../sections/retraces/layout';
import { rooflineSummary } from '../sections/roofline/points';
import { timelineSummary } from '../sections/timeline/summary';
import type { SectionKind } from './section';

/** The panel's sections below the verdict, in their order. Each view is a script of its own; what a heading says is here. */
export const SECTIONS: readonly SectionKind[] = [
  {
    ...{ id: 'clusters', title: 'Clusters', key: '2', column: 1, table: true, summary: clustersSummary },
    about: 'what is compiled together, and why not more',
    load: async () => (await import('../sections/clusters/view')).ClustersView
  },
  {
    ...{ id: 'code', title: 'Code', key: '3', column: 0 },
    about: 'your lines beside the code made of them',
    summary: ({ clusters }) => (clusters.length ? 'Hover to link, click to pin' : ''),
    load: async () => (await import('../sections/code/view')).CodeView
  },
  {
    ...{ id: 'retraces', title: 'Retraces', key: '4', column: 0 },
    about: 'calls that were traced again, and how to avoid it',
    summary: report => ledgerSummary(ledgerOf(report)),
    load: async () => (await import('../sections/retraces/view')).RetracesView
  },
  {
    ...{ id: 'timeline', title: 'Timeline', key: '5', column: 'dock', table: true, summary: timelineSummary },
    about: 'when each part ran, and for how long',
    load: async () => (await import('../sections/timeline/view')).TimelineView
  },
  {
    ...{ id: 'what-if', title: 'What-if', key: '6', column: 2, table: true },
    about: 'what another decision would cost',
    ...{ asks: true, jobs: ['whatif', 'sweep'] },
    load: async () => (await import('../sections/whatif/view')).WhatIfView
  },
  {
    ...{ id: 'compare', title: 'Compare', key: '7', column: 2, table: true, asks: true },
    about: 'this run beside earlier ones',
    load: async () => (await import('../sections/compare/view')).CompareView
  },
  {
    ...{ id: 'roofline', title: 'Roofline', key: '8', column: 2, table: true, summary: rooflineSummary },
    about: 'how near kernels come to what the machine can do',
    load: async () => (await import('../sections/roofline/view')).RooflineView
  }
];
