"""Reports and the explorer as ipywidgets.

Parts, in the order of the data: report_widget, controls, exploring, explorer.
"""
