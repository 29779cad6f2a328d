"""Decisions of the compiler changed, measured and kept.

Parts, in the order of the data: plan_questions, variants, blockers, alternatives, experiments, flip_verification, whatif,
textblocks, keeping.
"""
