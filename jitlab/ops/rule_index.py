"""In which module the rule of each function stands; made by `scripts/rule_index.py`."""

#: Functions and ufuncs, by dotted names.
FUNCTIONS: dict[str, str] = {
    "elementwise.arithmetic": (
        "numpy.abs numpy.absolute numpy.add numpy.arctan2 numpy.atan2 numpy.copysign numpy.divide numpy.floor_divide "
        "numpy.fmax numpy.fmin numpy.fmod numpy.hypot numpy.maximum numpy.minimum numpy.mod numpy.multiply "
        "numpy.negative numpy.pow numpy.power numpy.reciprocal numpy.remainder numpy.sign numpy.sqrt numpy.square "
        "numpy.subtract numpy.true_divide"
    ),
    "elementwise.comparison": (
        "numpy.bitwise_and numpy.bitwise_invert numpy.bitwise_left_shift numpy.bitwise_not numpy.bitwise_or "
        "numpy.bitwise_right_shift numpy.bitwise_xor numpy.equal numpy.greater numpy.greater_equal numpy.invert "
        "numpy.isfinite numpy.isinf numpy.isnan numpy.left_shift numpy.less numpy.less_equal numpy.logical_and "
        "numpy.logical_not numpy.logical_or numpy.logical_xor numpy.not_equal numpy.right_shift numpy.signbit"
    ),
    "elementwise.math_functions": (
        "numpy.acos numpy.acosh numpy.arccos numpy.arccosh numpy.arcsin numpy.arcsinh numpy.arctan numpy.arctanh "
        "numpy.asin numpy.asinh numpy.atan numpy.atanh numpy.cbrt numpy.ceil numpy.cos numpy.cosh numpy.exp numpy.exp2 "
        "numpy.expm1 numpy.floor numpy.log numpy.log10 numpy.log1p numpy.log2 numpy.rint numpy.sin numpy.sinh numpy.tan "
        "numpy.tanh numpy.trunc"
    ),
    "elementwise.rare_functions": (
        "numpy.bitwise_count numpy.frexp numpy.gcd numpy.heaviside numpy.lcm numpy.ldexp numpy.logaddexp "
        "numpy.logaddexp2 numpy.modf numpy.nextafter numpy.spacing"
    ),
    "elementwise.special": (
        "numpy.i0 scipy.special.beta scipy.special.betaln scipy.special.cbrt scipy.special.dawsn scipy.special.entr "
        "scipy.special.erf scipy.special.erfc scipy.special.erfcinv scipy.special.erfcx scipy.special.erfi "
        "scipy.special.erfinv scipy.special.exp10 scipy.special.exp2 scipy.special.expit scipy.special.expm1 "
        "scipy.special.gamma scipy.special.gammainc scipy.special.gammaincc scipy.special.gammaln scipy.special.i0 "
        "scipy.special.i0e scipy.special.i1 scipy.special.i1e scipy.special.j0 scipy.special.j1 scipy.special.kl_div "
        "scipy.special.log1p scipy.special.log_expit scipy.special.log_ndtr scipy.special.log_softmax "
        "scipy.special.loggamma scipy.special.logit scipy.special.logsumexp scipy.special.ndtr scipy.special.ndtri "
        "scipy.special.psi scipy.special.rel_entr scipy.special.rgamma scipy.special.softmax scipy.special.softplus "
        "scipy.special.xlog1py scipy.special.xlogy"
    ),
    "layout.diagonals": (
        "numpy.diag numpy.diag_indices_from numpy.diagflat numpy.tril numpy.tril_indices_from numpy.triu "
        "numpy.triu_indices_from"
    ),
    "layout.padding": "numpy.pad",
    "linear_algebra.eigenvalues": "numpy.linalg.eig numpy.linalg.eigh numpy.linalg.eigvals numpy.linalg.eigvalsh",
    "linear_algebra.einsum": "numpy.einsum numpy.einsum_path",
    "linear_algebra.factorizations": "numpy.linalg.cholesky numpy.linalg.qr",
    "linear_algebra.fourier": (
        "numpy.fft.fft numpy.fft.fftfreq numpy.fft.ifft numpy.fft.irfft numpy.fft.rfft numpy.fft.rfftfreq"
    ),
    "linear_algebra.linear_systems": (
        "numpy.linalg.det numpy.linalg.inv numpy.linalg.slogdet numpy.linalg.solve numpy.linalg.tensorsolve"
    ),
    "linear_algebra.norms": "numpy.linalg.cond numpy.linalg.matrix_rank numpy.linalg.norm",
    "linear_algebra.singular_values": "numpy.linalg.lstsq numpy.linalg.pinv numpy.linalg.svd numpy.linalg.svdvals",
    "linear_algebra.tensor_products": (
        "numpy.cross numpy.dot numpy.inner numpy.kron numpy.matmul numpy.matvec numpy.outer numpy.tensordot numpy.trace "
        "numpy.vdot numpy.vecdot numpy.vecmat"
    ),
    "neural.rules_nn": "jitlab.nn.avg_pool jitlab.nn.conv jitlab.nn.conv_transpose jitlab.nn.max_pool",
    "numpy_api.grids": "numpy.c_.__getitem__ numpy.r_.__getitem__",
    "numpy_api.rules_arrays": "builtins.sum",
    "numpy_api.rules_creation": (
        "numpy.arange numpy.array numpy.asanyarray numpy.asarray numpy.asarray_chkfinite numpy.ascontiguousarray "
        "numpy.asfortranarray numpy.broadcast_arrays numpy.empty numpy.empty_like numpy.eye numpy.full numpy.full_like "
        "numpy.geomspace numpy.identity numpy.indices numpy.linspace numpy.logspace numpy.meshgrid numpy.ndarray "
        "numpy.ones numpy.ones_like numpy.require numpy.tri numpy.vander numpy.zeros numpy.zeros_like"
    ),
    "numpy_api.rules_indexing": (
        "numpy.astype numpy.choose numpy.compress numpy.copy numpy.ix_ numpy.ravel_multi_index numpy.reshape numpy.take "
        "numpy.take_along_axis numpy.unravel_index"
    ),
    "numpy_api.rules_joining": (
        "numpy.block numpy.concat numpy.concatenate numpy.delete numpy.insert numpy.repeat numpy.resize numpy.roll "
        "numpy.stack numpy.tile"
    ),
    "numpy_api.rules_questions": (
        "numpy.allclose numpy.array_equal numpy.array_equiv numpy.isclose numpy.isneginf numpy.isposinf "
        "numpy.real_if_close"
    ),
    "numpy_api.rules_reductions": (
        "numpy.all numpy.amax numpy.amin numpy.any numpy.argmax numpy.argmin numpy.average numpy.count_nonzero "
        "numpy.max numpy.mean numpy.min numpy.prod numpy.std numpy.sum numpy.var"
    ),
    "reducing.differences": (
        "numpy.convolve numpy.correlate numpy.ediff1d numpy.gradient numpy.interp numpy.piecewise numpy.polyval "
        "numpy.unwrap"
    ),
    "reducing.nan_statistics": (
        "numpy.corrcoef numpy.cov numpy.histogram numpy.histogram2d numpy.histogram_bin_edges numpy.histogramdd "
        "numpy.nanargmax numpy.nanargmin numpy.nanmax numpy.nanmean numpy.nanmin numpy.nanprod numpy.nanstd "
        "numpy.nansum numpy.nanvar"
    ),
    "reducing.scans": "numpy.cumprod numpy.cumsum numpy.nancumprod numpy.nancumsum",
    "reducing.sets": (
        "numpy.argwhere numpy.bincount numpy.extract numpy.flatnonzero numpy.intersect1d numpy.nonzero numpy.setdiff1d "
        "numpy.setxor1d numpy.trim_zeros numpy.union1d numpy.unique numpy.unique_all numpy.unique_counts "
        "numpy.unique_inverse numpy.unique_values"
    ),
    "reducing.sorting": (
        "numpy.argpartition numpy.argsort numpy.digitize numpy.in1d numpy.isin numpy.lexsort numpy.median "
        "numpy.nanmedian numpy.nanpercentile numpy.nanquantile numpy.partition numpy.percentile numpy.quantile "
        "numpy.searchsorted numpy.sort"
    ),
}

#: Methods of ndarray.
METHODS: dict[str, str] = {
    "linear_algebra.tensor_products": "dot trace",
    "numpy_api.rules_indexing": "__getitem__ astype choose compress copy flatten reshape take",
    "numpy_api.rules_joining": "repeat",
    "numpy_api.rules_reductions": "all any argmax argmin max mean min prod std sum var",
    "reducing.scans": "cumprod cumsum",
    "reducing.sets": "nonzero",
    "reducing.sorting": "argpartition argsort searchsorted",
}

#: Functions that write into their first argument.
UPDATES: dict[str, str] = {
    "numpy_api.rules_indexing": "numpy.copyto numpy.fill_diagonal numpy.place numpy.put numpy.put_along_axis numpy.putmask",
}

#: Methods of ndarray that write into the array.
UPDATE_METHODS: dict[str, str] = {
    "numpy_api.rules_indexing": "__setitem__ fill put",
    "reducing.sorting": "partition sort",
}
