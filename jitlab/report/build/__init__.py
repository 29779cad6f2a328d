"""A recording becomes the report's JSON.

Parts, in the order of the data: entries, titles, uses, spans, lanes, lines, source_files, python_statements, waited,
repeated, accounting, advice, code, build_report.
"""
