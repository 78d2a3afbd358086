"""A small network learns to read handwritten digits, is saved, and reads them as well after loading.

Run it with ``python examples/digits.py``; it needs scikit-learn, for the images, and tqdm, for the progress bar.
"""

import os
import tempfile
from typing import Any

import tapegrad as tg

try:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from tqdm import tqdm
except ImportError as missing:
    raise SystemExit(
        f"this example needs {missing.name}; install what the examples need with: pip install 'tapegrad[examples]'"
    ) from missing

EPOCHS, BATCH = 20, 64


def network() -> Any:
    """From 64 grey values to a score for each of the ten digits."""
    return tg.nn.Sequential(tg.nn.Linear(64, 128), tg.nn.ReLU(), tg.nn.Linear(128, 10))


def accuracy(net: Any, images: Any, digits: Any) -> float:
    """Part of the images that are read correctly."""
    with tg.no_grad():
        return (net(images).argmax(1) == digits).double().mean().item()


def train(net: Any, images: Any, digits: Any) -> None:
    """Adam on mini-batches, in another order in each epoch."""
    optimizer = tg.optim.Adam(net.parameters(), lr=0.01)
    schedule = tg.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    bar = tqdm(range(EPOCHS), desc="training", unit="epoch")
    for _ in bar:
        for batch in tg.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            loss = tg.nn.functional.cross_entropy(net(images[batch]), digits[batch])
            loss.backward()
            optimizer.step()
        schedule.step()
        bar.set_postfix(loss=f"{loss.item():.4f}")


def main() -> None:
    """Train, save, load into a fresh network, and compare."""
    tg.manual_seed(0)
    pixels, labels = load_digits(return_X_y=True)
    parts = train_test_split(pixels / 16.0, labels, test_size=0.2, random_state=1, stratify=labels)
    train_images, test_images, train_digits, test_digits = map(tg.tensor, parts)
    print(f"{len(train_images)} images to learn from, {len(test_images)} to be tested with")

    net = network()
    train(net, train_images, train_digits)
    trained = accuracy(net, test_images, test_digits)
    print(f"read correctly after training: {trained:.2%}")
    assert trained >= 0.97

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "digits.npz")
        tg.save(net.state_dict(), path)
        fresh = network()
        print(f"a fresh network, before loading: {accuracy(fresh, test_images, test_digits):.2%}")
        fresh.load_state_dict(tg.load(path))
    loaded = accuracy(fresh, test_images, test_digits)
    assert loaded == trained
    print(f"the same network after loading what was saved: {loaded:.2%}")


if __name__ == "__main__":
    main()
