"""DiME, LiDAR and dataset entropy on 1000 samples x 25 layers x 1024 dimensions, against the LAPACK calls they cannot avoid.

The floor of DiME is eleven eigenvalue problems of N x N a layer, of dataset entropy one, of LiDAR the product that gives the
scatter matrix and the generalised eigenvalue problem of D x D that its definition is. Both take turns layer by layer.
"""

import argparse
import time

import numpy as np
import scipy.linalg
from layerwise.metrics.dime import dime
from layerwise.metrics.lidar import lidar
from layerwise.spectrum import centre_unit, gram_spectrum, renyi_entropy


def clock(call: object, *arguments: object) -> float:
    """Return the CPU seconds of one call."""
    start = time.process_time()
    call(*arguments)  # type: ignore[operator]
    return time.process_time() - start


def entropy(rows: np.ndarray) -> np.ndarray:
    """Matrix-based entropy of prepared rows."""
    return renyi_entropy(gram_spectrum(rows))


def symmetric(n: int, seed: int) -> np.ndarray:
    """A random positive definite matrix."""
    rows = np.random.default_rng(seed).standard_normal((n, n + 8))
    return rows @ rows.T


def main() -> None:
    """Print seconds of each metric and of its floor, and their ratio; at most 1.5 is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--d", type=int, default=1024)
    options = parser.parse_args()
    n, d, views = options.n, options.d, 16
    spent: dict[str, list[float]] = {name: [0.0, 0.0] for name in ("dime", "dataset_entropy", "lidar")}
    for layer in range(options.layers):
        rng = np.random.default_rng(layer)
        base = rng.standard_normal((n, 1, d))
        many = np.stack(
            [centre_unit(view) for view in (base + rng.standard_normal((n, views, d))).transpose(1, 0, 2)], axis=1
        )
        samples, features = symmetric(n, layer), symmetric(d, layer)
        spent["dime"][0] += clock(dime, many[:, 0], many[:, 1])
        spent["dime"][1] += sum(clock(np.linalg.eigvalsh, samples) for _ in range(11))
        spent["dataset_entropy"][0] += clock(entropy, many[:, 0])
        spent["dataset_entropy"][1] += clock(np.linalg.eigvalsh, samples)
        spent["lidar"][0] += clock(lidar, many)
        spent["lidar"][1] += clock(scipy.linalg.eigvalsh, symmetric(d, layer + 100), features)
        flat = many.reshape(n * views, d)
        spent["lidar"][1] += clock(np.matmul, flat.T, flat)  # the scatter matrix itself
    for name, (ours, floor) in spent.items():
        print(f"{name:18s} {ours:8.2f} s, LAPACK and BLAS {floor:8.2f} s, ratio {ours / floor:.2f} (at most 1.5 wanted)")


if __name__ == "__main__":
    main()
