"""Reports and facts in files: what a notebook keeps, baselines, comparisons.

Parts, in the order of the data: bounded_files, fingerprints, settled, fitting, summary, report_files, older, runs, baselines,
comparing, regressions.
"""
