#!/usr/bin/env python3
"""Records the results of scikit-learn and TensorFlow, with which tests compare the canned models and the metrics
(tests/data/canned_models/*.json, described in its README.md).

Not part of `./dev test`; run it by hand when a case is added. It records the results of those packages that are
installed:

  python3 -m venv others && others/bin/pip install scikit-learn tensorflow-cpu
  others/bin/python tools/record_canned_models.py tests/data/canned_models
"""

import json
import os
import pathlib
import random
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

L2 = 0.01  # ours: mean loss + L2 / 2 · |weights|²; scikit-learn's: C · sum of losses + 1 / 2 · |weights|²


def logistic_regression():
    import sklearn
    import sklearn.datasets
    import sklearn.linear_model
    import sklearn.metrics

    iris = sklearn.datasets.load_iris()
    cases = []
    for name, rows in (("versicolor_or_virginica", iris.target > 0), ("three_classes", iris.target >= 0)):
        features, labels = iris.data[rows], iris.target[rows] - iris.target[rows].min()
        mean, deviation = features.mean(axis=0), features.std(axis=0)
        standardised = (features - mean) / deviation
        model = sklearn.linear_model.LogisticRegression(C=1 / (len(labels) * L2), tol=1e-12, max_iter=1_000_000)
        model.fit(standardised, labels)
        probabilities = model.predict_proba(standardised)
        cases.append({
            "name": name, "features": features.tolist(), "labels": labels.tolist(), "mean": mean.tolist(),
            "deviation": deviation.tolist(), "weights": model.coef_.tolist(), "bias": model.intercept_.tolist(),
            "accuracy": model.score(standardised, labels),
            "average_loss": sklearn.metrics.log_loss(labels, probabilities),
        })
    return {"scikit-learn": sklearn.__version__, "l2": L2, "cases": cases}


def metric_cases():
    """TensorFlow and muster get the rows in batches, as a model would be evaluated."""
    generator = random.Random(3)
    rows, batch = 130, 50

    def labels(share):
        return [int(generator.random() < share) for _ in range(rows)]

    def near(label, spread):
        return min(1.0, max(0.0, label + generator.gauss(0, spread)))

    half = labels(0.5)
    rare = labels(0.1)
    cases = {
        "uniform": ([generator.random() for _ in range(rows)], half, None),
        "good": ([near(label, 0.5) for label in half], half, None),
        "rare": ([near(label, 0.4) for label in rare], rare, None),
        "weighed": ([near(label, 0.6) for label in half], half, [generator.choice([0.0, 0.5, 1.0, 3.0]) for _ in half]),
        "peaked": ([near(label, 0.7) * 1e-3 for label in half], half, None),
        "on_thresholds": ([generator.randrange(200) / 199 for _ in range(rows)], half, None),
        "ends": ([float(generator.randrange(2)) for _ in range(rows)], half, None),
        "only_positives": ([generator.random() for _ in range(rows)], [1] * rows, None),
        "only_negatives": ([generator.random() for _ in range(rows)], [0] * rows, None),
    }
    return batch, cases


def metrics():
    import tensorflow as tf

    v1 = tf.compat.v1
    batch, cases = metric_cases()
    recorded = []
    for name, (predictions, labels, weights) in cases.items():
        with tf.Graph().as_default(), v1.Session() as session:
            prediction = v1.placeholder(tf.float32, [None])
            label = v1.placeholder(tf.float32, [None])
            weight = v1.placeholder(tf.float32, [None])
            decision = tf.cast(prediction > 0.5, tf.float32)
            answers = {
                "accuracy": v1.metrics.accuracy(label, decision, weight),
                "precision": v1.metrics.precision(label, decision, weight),
                "recall": v1.metrics.recall(label, decision, weight),
                "auc": v1.metrics.auc(label, prediction, weight),
                "auc_precision_recall": v1.metrics.auc(label, prediction, weight, curve="PR"),
                "mean_squared_error": v1.metrics.mean_squared_error(label, prediction, weight),
                "mean_absolute_error": v1.metrics.mean_absolute_error(label, prediction, weight),
                "prediction/mean": v1.metrics.mean(prediction, weight),
                "label/mean": v1.metrics.mean(label, weight),
            }
            session.run(v1.local_variables_initializer())
            for begin in range(0, len(labels), batch):
                end = begin + batch
                session.run([update for _, update in answers.values()], {
                    prediction: predictions[begin:end], label: labels[begin:end],
                    weight: (weights or [1.0] * len(labels))[begin:end]})
            results = session.run({key: value for key, (value, _) in answers.items()})
        recorded.append({"name": name, "predictions": predictions, "labels": labels, "weights": weights,
                         "results": {key: float(value) for key, value in results.items()}})
    return {"tensorflow": tf.__version__, "batch": batch, "cases": recorded}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name, record in (("logistic_regression.json", logistic_regression), ("metrics.json", metrics)):
        try:
            recorded = record()
        except ImportError as error:
            print(f"{name}: not recorded ({error})")
            continue
        cases = ",\n".join(json.dumps(case) for case in recorded.pop("cases"))  # one line per case
        text = f'{json.dumps(recorded)[:-1]}, "cases": [\n{cases}\n]}}\n'
        (pathlib.Path(sys.argv[1]) / name).write_text(text, encoding="utf-8")
        print(f"{name}: recorded")


if __name__ == "__main__":
    main()
