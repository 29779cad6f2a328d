"""The link to the panel: what it may ask, and the answers.

Parts, in the order of the data: link, budget, requests, answers, run_answers, code_answer, page_answer, check_answer, inputs,
measuring_requests, jobs.
"""
