"""The kernel's side of JupyterLab: magics, the link to the panel, widgets.

Parts, in the order of the data: extension, history, saved_outputs, cell_session, magics, rpc, widgets, notebook_check.
"""
