"""A report as text, picture, page, plot and trace.

Parts, in the order of the data: wording, marks, unfused, outline, text, svg, html, graphviz_dot, plot, chrome, why, bundle.
"""
