"""Makes docs/reference/operations.md: what jitlab does with each of NumPy's functions, found by recording one call of each.

python scripts/operations_table.py          writes the page; a test compares the two
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special

import jitlab as jl
from jitlab import nn
from jitlab.errors import NoGradientError
from jitlab.ir import Graph
from jitlab.ops import operations
from jitlab.ops.elementwise.casts import Cast
from jitlab.ops.host_operations import HostCall, Item
from jitlab.ops.layout.views import Reshape, View
from jitlab.ops.leaf_operations import Constant, Length
from jitlab.ops.library_operations import Library
from jitlab.passes import gradients

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "operations.md"

#: What the calls below work on.
ARGUMENTS = {
    "x": np.linspace(0.1, 0.9, 12).reshape(4, 3),
    "y": np.linspace(0.3, 0.8, 3),
    "v": np.array([0.5, 0.25, 0.75, 0.125, 0.625]),
    "m": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    "c": np.array([0.5 + 0.25j, -0.25 + 1j, 0.75 - 0.5j]),
    "i": np.array([2, 0, 1, 2]),
    "b": np.array([True, False, True, True]),
    "s": np.linspace(0.0, 1.0, 75).reshape(1, 5, 5, 3),
    "k": np.linspace(-1.0, 1.0, 54).reshape(3, 3, 3, 2),
}

#: Topic -> calls, one of each function.
CALLS: dict[str, str] = {
    "Elementwise, one operand": """
        abs(x) acos(x) acosh(x+1) asin(x) asinh(x) atan(x) atanh(x) bitwise_count(i) bitwise_invert(i) cbrt(x) ceil(x)
        conj(c) cos(x) cosh(x) deg2rad(x) exp(x) exp2(x) expm1(x) fabs(x) fix(x) floor(x) frexp(x) i0(x) imag(c) invert(i)
        isfinite(x) isinf(x) isnan(x) isneginf(x) isposinf(x) log(x) log10(x) log1p(x) log2(x) logical_not(b) modf(x)
        nan_to_num(x) negative(x) positive(x) rad2deg(x) real(c) reciprocal(x) rint(x) round(x,1) sign(x) signbit(x) sin(x)
        sinc(x) sinh(x) spacing(x) sqrt(x) square(x) tan(x) tanh(x) trunc(x) angle(c) exp(c) log(c) sqrt(c) sin(c)""",
    "Elementwise, several operands": """
        add(x,y) atan2(x,y) bitwise_and(i,i) bitwise_left_shift(i,i) bitwise_or(i,i) bitwise_right_shift(i,i)
        bitwise_xor(i,i) clip(x,0,1) copysign(x,y) divide(x,y) divmod(x,y) equal(x,y) float_power(x,y) floor_divide(x,y)
        fmax(x,y) fmin(x,y) fmod(x,y) gcd(i,i) greater(x,y) greater_equal(x,y) heaviside(x,y) hypot(x,y) isclose(x,y)
        lcm(i,i) ldexp(v[:4],i) less(x,y) less_equal(x,y) logaddexp(x,y) logaddexp2(x,y) logical_and(b,b) logical_or(b,b)
        logical_xor(b,b) maximum(x,y) minimum(x,y) multiply(x,y) nextafter(x,y) not_equal(x,y) pow(x,y) remainder(x,y)
        subtract(x,y) where(x>0.5,x,y) select([x>0.5],[x],0) piecewise(x,[x>0.5],[1,2]) choose(i,[i,i,i]) array_equal(x,x)
        allclose(x,x)""",
    "Reductions and statistics": """
        sum(x,axis=0) prod(x,axis=0) mean(x,axis=0) std(x) var(x) max(x,axis=0) min(x,axis=0) ptp(x) argmax(x,axis=1)
        argmin(x,axis=1) any(b) all(b) count_nonzero(x) average(x,axis=0) median(x,axis=0) percentile(x,30)
        quantile(x,0.3,axis=0) nansum(x) nanprod(x) nanmean(x) nanvar(x) nanstd(x) nanmax(x) nanmin(x) nanargmax(v)
        nanargmin(v) nanmedian(x) nanquantile(x,0.5) cov(x) corrcoef(x) histogram(v,bins=4,range=(0,1)) histogram(v)
        bincount(i) digitize(v,y) interp(v,y,y) trapezoid(x) diff(x) ediff1d(v) gradient(v) convolve(v,y) correlate(v,y)
        add.reduce(x) logaddexp.reduce(x) add.reduceat(v,[0,2]) unwrap(v) polyval(v,y)""",
    "Running": """
        cumsum(x,axis=0) cumprod(x,axis=1) cumulative_sum(v) cumulative_prod(v) nancumsum(v) maximum.accumulate(v)
        add.accumulate(v)""",
    "Sorting and searching": """
        sort(x) argsort(x) lexsort((v,)) partition(v,2) argpartition(v,2) searchsorted(y,v) isin(i,[1,2]) nonzero(b)
        argwhere(b) flatnonzero(b) unique(i) unique_values(i) unique_counts(i) unique_inverse(i) unique_all(i) union1d(i,i)
        intersect1d(i,i) setdiff1d(i,i) extract(b,i) compress(b,i)""",
    "Shape": """
        reshape(x,(2,6)) ravel(x) transpose(x) permute_dims(x,(1,0)) matrix_transpose(x) swapaxes(x,0,1) moveaxis(x,0,1)
        rollaxis(x,1) expand_dims(x,0) squeeze(x[None]) broadcast_to(y,(4,3)) broadcast_arrays(x,y)
        lib.stride_tricks.sliding_window_view(v,2) concatenate([x,x])
        concat([x,x]) stack([x,x]) hstack([x,x]) vstack([x,x]) dstack([x,x]) column_stack([v,v]) block([[x,x]]) split(x,2)
        array_split(v,2) unstack(x) tile(x,2) repeat(x,2,axis=0) repeat(i,i) flip(x) fliplr(x) flipud(x) roll(x,1) rot90(x)
        pad(x,1) append(v,v) insert(v,1,0.5) delete(v,1) resize(v,3) atleast_2d(v) copy(x) astype(x,float32) trim_zeros(v)""",
    "Creation": """
        zeros((2,3)) ones((2,3)) full((2,3),v[0]) empty((2,)) zeros_like(x) ones_like(x) full_like(x,2) empty_like(x)
        arange(5) linspace(0,1,5) logspace(0,1,5) geomspace(1,2,5) eye(3) identity(3) tri(3) tril(m) triu(m) diag(v)
        diagflat(v) diagonal(m) vander(y) meshgrid(v,y) indices((2,3)) asarray(x) array([x,x])""",
    "Indexing": """
        take(x,i[:2],axis=0) take_along_axis(x,i[:,None],axis=1) x[i%3] x[b] x[x>0.5].sum() x[1:,::-1] ix_(i,i)""",
    "Linear algebra": """
        matmul(x,m) dot(x,m) inner(x,x) outer(v,v) vdot(v,v) vecdot(x,x) tensordot(x,x,2) einsum('ij,kj->ik',x,x) kron(m,m)
        cross(x,y) trace(m) linalg.cholesky(m) linalg.cond(m) linalg.cross(x,x) linalg.det(m) linalg.diagonal(m)
        linalg.eig(m) linalg.eigh(m) linalg.eigvals(m) linalg.eigvalsh(m) linalg.inv(m) linalg.lstsq(x,x) linalg.matmul(m,m)
        linalg.matrix_norm(m) linalg.matrix_power(m,3) linalg.matrix_rank(m) linalg.matrix_transpose(m)
        linalg.multi_dot([m,m,m]) linalg.norm(x) linalg.outer(v,v) linalg.pinv(x) linalg.qr(m) linalg.slogdet(m)
        linalg.solve(m,y) linalg.svd(m) linalg.svdvals(m) linalg.tensordot(m,m,axes=1) linalg.tensorinv(m,ind=1)
        linalg.tensorsolve(m,y) linalg.trace(m) linalg.vecdot(x,x) linalg.vector_norm(x)""",
    "Fourier transforms": """
        fft.fft(v) fft.ifft(c) fft.rfft(v) fft.irfft(c) fft.hfft(c) fft.ihfft(v) fft.fft2(x) fft.ifft2(x) fft.rfft2(x)
        fft.irfft2(x) fft.fftn(x) fft.ifftn(x) fft.rfftn(x) fft.irfftn(x) fft.fftfreq(5) fft.rfftfreq(5) fft.fftshift(v)
        fft.ifftshift(v)""",
    "scipy.special": """
        special.erf(x) special.erfc(x) special.erfinv(x) special.expit(x) special.logit(x) special.log_expit(x)
        special.gammaln(x) special.digamma(x) special.ndtr(x) special.log_ndtr(x) special.xlogy(x,y) special.xlog1py(x,y)
        special.entr(x) special.rel_entr(x,y) special.kl_div(x,y) special.i0(x) special.i1(x) special.softmax(x,axis=1)
        special.log_softmax(x,axis=1) special.logsumexp(x,axis=1)""",
    "Neural networks (jl.nn)": """
        nn.conv(s,k) nn.conv_transpose(s,k.swapaxes(2,3)) nn.max_pool(s,2) nn.avg_pool(s,2) nn.relu(x) nn.sigmoid(x)
        nn.gelu(x)""",
    "Random numbers": """
        random.default_rng(1).normal(size=3) random.default_rng(1).permutation(v)""",
}


def calls() -> Iterator[tuple[str, str]]:
    """(topic, call) for each; a call that is no expression of `x` and its like is NumPy's function of that name."""
    for topic, text in CALLS.items():
        for call in text.split():
            named = re.sub(r"(?<![\w.'])(float32)", r"np.\1", call)
            known = call.startswith(("special.", "nn.")) or (call[0] in ARGUMENTS and call[1] in "[.")
            yield topic, named if known else f"np.{named}"


@dataclass(frozen=True)
class Found:
    """How a call runs ("loop", "library", "view" or "host"), the operations it becomes, why the host, and its gradient."""

    how: str
    operations: tuple[str, ...]
    why: str
    gradient: str


def recorded(call: str) -> Found:
    """What a call becomes, from the graph that it records and that of its gradient."""
    source = f"def call({', '.join(ARGUMENTS)}):\n    return {call}\n"
    name = f"<operations table: {call}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"np": np, "special": special, "nn": nn}
    exec(compile(source, name, "exec"), space)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            graph = jl.function(space["call"]).get_concrete_function(*ARGUMENTS.values()).graph
        except jl.errors.CaptureError:  # a view that only NumPy can make has to come from NumPy, unless the program copies it
            return recorded(f"{call}.copy()")
    nodes = [node for node in graph.nodes if not node.op.is_parameter and not isinstance(node.op, (Constant, Length, Item))]
    host = [node for node in nodes if isinstance(node.op, HostCall)]
    names = tuple(dict.fromkeys(node.op.name for node in nodes if not isinstance(node.op, (View, Reshape, Cast))))
    if host:
        return Found("host", names, host[0].op.reason, _gradient(graph))
    kinds = {"library" if isinstance(node.op, Library) else "loop" for node in nodes if node.op.name in names}
    if not kinds:  # the caller gets a view of its own array: the graph has nothing to hand out
        value = space["call"](*ARGUMENTS.values())
        floats = all(np.asarray(part).dtype.kind in "fc" for part in (value if isinstance(value, (list, tuple)) else [value]))
        return Found("view", names, "", "yes" if floats else "-")
    return Found("library" if "library" in kinds else "loop", names, "", _gradient(graph))


def _gradient(graph: Graph) -> str:
    """ "yes", "no", or "-" where the result is no continuous function of the arguments."""
    floats = [node for node in graph.parameters if node.dtype.kind in "fc"]
    ys = [node for node in graph.outputs if node.dtype.kind in "fc"]
    if not ys:
        return "-"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = gradients(graph, ys, floats)
    except NoGradientError:
        return "no"
    return "yes" if any(g is not None for g in found) else "-"


def page() -> str:
    """The text of docs/reference/operations.md."""
    lines = [
        "# Operations",
        "",
        "What jitlab does with NumPy's functions. This page is made by `scripts/operations_table.py`, which records one call of"
        " each and looks at the graph; a test compares it with what is recorded now.",
        "",
        "- **loop**: the operation has a loop body; it is fused with its neighbours and runs as machine code.",
        "- **view**: it only says where elements lie, and costs nothing of its own.",
        "- **library**: NumPy's own code, called as one kernel inside a cluster.",
        "- **host**: it runs on NumPy between clusters, for the reason given; `jit_compile=True` refuses it with that reason.",
        "- The gradient: `yes`, `no`, or `-` where there is none to have (integers, bools, steps, no argument that counts).",
        "",
    ]
    for topic in CALLS:
        lines += [f"## {topic}", "", "| call | how | operations | gradient |", "|---|---|---|---|"]
        for where, call in calls():
            if where == topic:
                found = recorded(call)
                names = ", ".join(f"`{name}`" for name in found.operations[:6]) + (", ..." if len(found.operations) > 6 else "")
                how = f"host: {found.why}" if found.how == "host" else found.how
                lines.append(f"| `{call}` | {how} | {names} | {found.gradient} |")
        lines.append("")
    lines += ["## The operations themselves", ""]
    lines += ["| operation | class | what it is | compiled as | NumPy's bits | gradient |", "|---|---|---|---|---|---|"]
    for cls in sorted(operations(), key=lambda cls: cls.__name__):
        if cls.is_parameter or cls in (HostCall, Item):
            continue
        first = (cls.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ").replace("|", "&#124;")
        kind = "library" if issubclass(cls, Library) else "view" if issubclass(cls, (View, Reshape)) else "loop"
        bits = "yes" if cls.exact else "within a bound"
        name, place = cls.tf_name or cls.__name__, f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"
        gradient = "yes" if cls.differentiable else "-"
        lines.append(f"| `{name}` | `{place}` | {' '.join(first.split())} | {kind} | {bits} | {gradient} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
