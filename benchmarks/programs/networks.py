"""Small neural nets and other learners, written out."""

import math

import numpy as np

from .record import Program, given


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def relu(z):
    return np.maximum(z, 0)


def softmax(z):
    e = np.exp(z - np.max(z, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def logistic_regression(X, y, lr=0.1, epochs=10, print_every=5):
    w, b = np.zeros(X.shape[1]), 0.0
    for epoch in range(epochs):
        p = sigmoid(X @ w + b)
        w -= lr * X.T @ (p - y) / len(y)
        b -= lr * np.mean(p - y)
        if epoch % print_every == 0:
            loss = -np.mean(y * np.log(p + 1e-9) + (1 - y) * np.log(1 - p + 1e-9))
            print("Epoch", epoch, "loss", round(float(loss), 6))
    return w, b


class MLP:
    """Layers with a relu between them, and a softmax."""

    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.weights = [rng.normal(0, 1 / math.sqrt(a), (a, b)) for a, b in zip(sizes, sizes[1:])]  # noqa: B905
        self.biases = [np.zeros(b) for b in sizes[1:]]

    def forward(self, x):
        activations = [x]
        for i, (W, b) in enumerate(zip(self.weights, self.biases)):  # noqa: B905
            z = activations[-1] @ W + b
            activations.append(softmax(z) if i == len(self.weights) - 1 else relu(z))
        return activations

    def backward(self, activations, target, lr):
        delta = (activations[-1] - target) / len(target)
        for i in reversed(range(len(self.weights))):
            grad_w = activations[i].T @ delta
            grad_b = delta.sum(axis=0)
            if i > 0:
                delta = (delta @ self.weights[i].T) * (activations[i] > 0)
            self.weights[i] -= lr * grad_w
            self.biases[i] -= lr * grad_b


def train_mlp(model, X, labels, epochs=3, lr=0.5):
    target = np.eye(model.biases[-1].size)[labels]
    history = {"loss": [], "accuracy": []}
    for _ in range(epochs):
        acts = model.forward(X)
        history["loss"].append(-np.log(acts[-1][np.arange(len(labels)), labels]).mean())
        history["accuracy"].append((acts[-1].argmax(axis=1) == labels).mean())
        model.backward(acts, target, lr)
    return history


def perceptron(samples, targets, epochs=5):
    weights = [0.0] * (len(samples[0]) + 1)
    for _ in range(epochs):
        errors = 0
        for x, t in zip(samples, targets):  # noqa: B905
            activation = weights[0] + sum(w * v for w, v in zip(weights[1:], x))  # noqa: B905
            guess = 1 if activation > 0 else -1
            if guess != t:
                errors += 1
                weights[0] += t
                for k, v in enumerate(x):
                    weights[k + 1] += t * v
        if errors == 0:
            break
    return weights, errors


def rnn_forward(inputs, h, Wxh, Whh, Why):
    """An Elman net: outputs by step, and the last hidden state."""
    outputs = {}
    for t, x in enumerate(inputs):
        h = np.tanh(Wxh @ x + Whh @ h)
        outputs[t] = Why @ h
    return outputs, h


def attention(q, k, v, mask=None):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = softmax(scores)
    return weights @ v, weights


def k_nearest(train, labels, query, k=3):
    result = []
    for q in query:
        distances = np.sqrt(((train - q) ** 2).sum(axis=1))
        nearest = np.argsort(distances)[:k]
        votes = {}
        for index in nearest:
            votes[int(labels[index])] = votes.get(int(labels[index]), 0) + 1
        result.append(max(votes, key=lambda label: (votes[label], -label)))
    return result


def q_learning(n_states, episodes, alpha=0.5, gamma=0.9, epsilon=0.1):
    rng = np.random.default_rng(11)
    Q = np.zeros((n_states, 2))
    total_steps = 0
    for _ in range(episodes):
        state = 0
        while state != n_states - 1 and total_steps < 100_000:
            if rng.random() < epsilon:
                action = int(rng.integers(2))
            else:
                action = int(np.argmax(Q[state] + 1e-9 * np.array([0, 1])))
            following = min(state + 1, n_states - 1) if action == 1 else max(state - 1, 0)
            reward = 1.0 if following == n_states - 1 else -0.01
            Q[state, action] += alpha * (reward + gamma * Q[following].max() - Q[state, action])
            state = following
            total_steps += 1
    return Q, total_steps


PROGRAMS = [
    Program(logistic_regression, (10, 2000, 100_000), lambda n, draw: given(draw.normal(size=(n, 3)), draw.integers(0, 2, n))),
    Program(
        train_mlp, (10, 500, 20_000), lambda n, draw: given(MLP([4, 6, 3]), draw.normal(size=(n, 4)), draw.integers(0, 3, n))
    ),
    Program(
        perceptron,
        (8, 300, 10_000),
        lambda n, draw: given(draw.normal(size=(n, 3)).tolist(), draw.choice([-1, 1], n).tolist(), epochs=4),
    ),
    Program(
        rnn_forward,
        (4, 300, 10_000),
        lambda n, draw: given(
            list(draw.normal(size=(n, 3))), np.zeros(5), *(draw.normal(size=shape) for shape in ((5, 3), (5, 5), (2, 5)))
        ),
    ),
    Program(
        attention,
        (4, 64, 700),
        lambda n, draw: given(*(draw.normal(size=(n, 8)) for _ in range(3)), mask=np.tril(np.ones((n, n), bool))),
    ),
    Program(
        k_nearest,
        (8, 300, 5000),
        lambda n, draw: given(draw.normal(size=(n, 2)), draw.integers(0, 3, n), draw.normal(size=(min(n // 2, 300), 2))),
    ),
    Program(q_learning, (3, 8, 20), lambda n, draw: given(n, 4 * n)),
]
