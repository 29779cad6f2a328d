"""A recording becomes the report's JSON.

Parts, in the order of the data: entries, titles, uses, spans, lanes, lines, source_files, python_statements, waited,
accounting, split, advice, code, build_report.
"""
