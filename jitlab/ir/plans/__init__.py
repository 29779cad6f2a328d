"""Plans: what became of a graph, what decided it, and why.

Parts, in the order of the data: decisions, overrides, reasons, plan, lowered, plan_json, call_forms.
"""
