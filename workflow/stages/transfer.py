"""What a linear classifier reads from codes: accuracy on the queries after learning on the database.

Sablayrolles, Douze, Usunier, Jégou. How Should We Evaluate Supervised Hashing? ICASSP 2017 (transfer).
"""

import warnings

import numpy as np

from workflow.stages.uncoded import unit_rows

METRIC = "transfer_accuracy"
# One value for codes and floats of any protocol: their rows have unit length, so that it means the same.
C = 1.0
MAX_ITERATIONS = 1000


def correctness(query, database, query_labels, database_labels):
    """Whether a linear classifier of the database's items gives each query its class: float64 (Q,), 0 or 1.

    query, database: vectors (Q, d) and (N, d), of any float or integer type, scaled to unit length here, so
    that codes in {-1, +1} and features are treated alike; labels: int64 (Q,) and (N,). The classifier is
    scikit-learn's `LogisticRegression`, C = 1, multinomial, fitted on the database items of the queries'
    classes. Raises ValueError for labels that are not classes, and where the queries have one class only.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if np.ndim(query_labels) != 1:
        raise ValueError("transfer needs a dataset with one class per item")
    if len(np.unique(query_labels)) < 2:
        raise ValueError("transfer needs queries of two classes at least")
    learnt = np.isin(database_labels, query_labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the iterations are part of the definition
        classifier = LogisticRegression(C=C, max_iter=MAX_ITERATIONS)
        classifier.fit(unit_rows(database[learnt]), database_labels[learnt])
    return (classifier.predict(unit_rows(query)) == query_labels).astype(np.float64)


def of_codes(query, database, bits, query_labels, database_labels):
    """`correctness` of packed codes, uint8 (Q, ceil(b/8)) and (N, ceil(b/8))."""
    signs = [np.unpackbits(codes, axis=1)[:, :bits].astype(np.float32) * 2 - 1 for codes in (query, database)]
    return correctness(signs[0], signs[1], query_labels, database_labels)
