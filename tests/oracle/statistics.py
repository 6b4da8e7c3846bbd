"""Values that tests/it/statistics.rs checks src/stats against. Run with SciPy >= 1.15; prints tests/data/stats/scipy.json.

    python3 tests/oracle/statistics.py > tests/data/stats/scipy.json
"""

import itertools
import json
import math
import sys

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(20250101)


def exact_signed_rank(values):
    """Exact conditional null with ties and zeros (Pratt): SciPy permutes all signs."""
    return stats.wilcoxon(
        values, alternative="greater", zero_method="pratt", correction=False,
        method=stats.PermutationMethod(n_resamples=np.inf),
    ).pvalue


def walsh(values):
    return sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2))


def bound(values, alpha):
    """Lower bound by inversion, found independently of any table: the largest Walsh average at and above which SciPy's
    exact test no longer rejects."""
    for candidate in walsh(values):
        if stats.wilcoxon(np.array(values) - (candidate + 1e-9), alternative="greater", method="exact").pvalue > alpha:
            return candidate
    return None


def max_t(columns):
    n = len(columns[0])
    scores = []
    for column in columns:
        column = np.array(column)
        ranks = stats.rankdata(np.abs(column)) * np.sign(column)
        scores.append(ranks / math.sqrt((ranks ** 2).sum()))
    scores = np.array(scores)
    observed = scores.sum(axis=1)
    signs = np.array(list(itertools.product([1, -1], repeat=n)))
    largest = (signs @ scores.T).max(axis=1)
    return [(largest >= o - 1e-9).mean() for o in observed]


def share_beyond(values, margin, alpha):
    values = np.abs(np.array(values))
    hits = 0
    signs = list(itertools.product([1, -1], repeat=len(values)))
    for s in signs:
        hits += stats.wilcoxon(values * s - margin, alternative="greater", method="exact").pvalue <= alpha
    return hits / len(signs)


samples = [list(np.round(rng.normal(0.03, 0.05, n), 6)) for n in (5, 8, 12, 15, 20, 33)]
tied = [list(np.round(rng.normal(0.4, 1.0, n))) for n in (7, 9, 12, 14)]
columns = [list(np.round(c, 6)) for c in rng.normal(0.3, 1, (1, 10)) + rng.normal(0.2, 0.7, (3, 10))]
wide = [list(np.round(rng.normal(0.0, 0.08, n), 6)) for n in (8, 9)]

json.dump({
    "scipy": scipy.__version__,
    "signed_rank": [
        {"values": v, "p": stats.wilcoxon(v, alternative="greater", method="exact").pvalue,
         "p_two_sided": stats.wilcoxon(v, alternative="two-sided", method="exact").pvalue} for v in samples],
    "signed_rank_tied": [{"values": v, "p": exact_signed_rank(v)} for v in tied],
    "hodges_lehmann": [{"values": v, "estimate": float(np.median(walsh(v)))} for v in samples],
    "lower_bound": [{"values": v, "alpha": a, "low": bound(v, a)} for v in samples[1:5] for a in (0.01, 0.025, 0.05)],
    "trimmed_mean": [{"values": v, "share": 0.2, "mean": stats.trim_mean(v, 0.2)} for v in samples],
    "median": [{"values": v, "median": float(np.median(v))} for v in samples],
    "sd": [{"values": v, "sd": float(np.std(v, ddof=1))} for v in samples],
    "max_t": [{"columns": columns, "p": max_t(columns)}],
    "share_beyond": [{"values": v, "margin": m, "alpha": 0.05, "share": share_beyond(v, m, 0.05)}
                     for v in wide for m in (0.005, 0.02)],
    "clopper_pearson": [
        {"hits": h, "trials": t, "alpha": a,
         "high": stats.binomtest(h, t).proportion_ci(1 - 2 * a, method="exact").high,
         "low": stats.binomtest(h, t).proportion_ci(1 - 2 * a, method="exact").low}
        for h, t, a in ((0, 300, 0.05), (3, 300, 0.05), (54, 60, 0.025), (7, 10000, 0.05))],
}, sys.stdout, indent=1)
print()
