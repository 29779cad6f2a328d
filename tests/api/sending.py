"""Sends functions to other processes in every way that people do, and says what became of them there."""

import concurrent.futures
import json
import multiprocessing
import os
import pickle
import types

import cloudpickle
import numpy as np

import jitlab as jl

X = np.linspace(0.0, 1.0, 7)
WANT = np.sqrt(X) * 3.0 + 1.0


def call(f, x=X):
    """A call in a worker: what it gave, and what its report says."""
    with jl.record() as recording:
        value = f(x)
    report = recording.report().data
    return {
        "right": bool(np.array_equal(value, WANT)),
        "kind": type(f).__name__,
        "compiled": len(report["clusters"]) > 0 and not report["fallbacks"] and not report["statements"],
        "elsewhere": os.getpid(),
        "lines": [line.strip() for source in report["sources"] for line in source["lines"]],
    }


def by_pickle(f):
    return call(pickle.loads(pickle.dumps(f)))


def by_cloudpickle(f):
    return call(pickle.loads(cloudpickle.dumps(f)))


def by_pool(method):
    def send(f):
        if method not in pools:
            context = multiprocessing.get_context(method)
            pools[method] = concurrent.futures.ProcessPoolExecutor(1, mp_context=context)
        return pools[method].submit(call, f).result(120)

    return send


def by_joblib(f):
    import joblib

    return joblib.Parallel(n_jobs=2)(joblib.delayed(call)(f) for _ in range(2))[1]


def by_pipeline(dumps):
    def send(f):
        """A clone of a Pipeline that was pickled."""
        from sklearn.base import clone
        from sklearn.pipeline import Pipeline
        from sklearn.preprocessing import FunctionTransformer

        whole = Pipeline([("f", FunctionTransformer(f))])
        assert clone(whole)[0].func is f or isinstance(f, types.MethodType)  # Python copies a method's object
        return call(pickle.loads(dumps(clone(whole))).transform)

    return send


pools = {}
PLAIN = {"pickle": by_pickle, "pickled pipeline": by_pipeline(pickle.dumps), "spawn": by_pool("spawn"), "fork": by_pool("fork")}
BY_VALUE = {"cloudpickle": by_cloudpickle, "joblib": by_joblib, "pipeline": by_pipeline(cloudpickle.dumps)}


def report(functions, ways):
    """Prints a line for each function, way, and state (fresh, called ten times)."""
    for state in ("fresh", "called"):
        for name, f in functions.items():
            for way, send in ways.items():
                try:
                    outcome = send(f)
                    outcome["elsewhere"] = outcome["elsewhere"] != os.getpid()
                except Exception as error:
                    outcome = {"error": f"{type(error).__name__}: {error}"[:500]}
                print(json.dumps([name, way, state, outcome]), flush=True)
            for _ in range(10 if state == "fresh" else 0):
                f(X)
