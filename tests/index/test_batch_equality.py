"""An index of batches decides as the job does of all documents at once, whatever is removed and merged between."""

import pytest
from grids import some
from growing import Texts, recipe_of, same_as_dedup, table

import neardup_gpu as nd

RECIPES = [
    {},
    {"max_partners": 3},
    {"max_partners": 1},
    {"max_partners": None},
    {"max_partners": 2, "filter": (6, 2, 2)},
    {"max_partners": 3, "filter": (4, 1, 3), "supershingle_bits": 16},
]


@pytest.mark.parametrize("case", some(range(len(RECIPES)), [0, 2, 5]))
def test_batches_decide_as_all_at_once(case: int, tmp_path) -> None:
    folder = tmp_path / "index"
    texts = Texts(case)
    live: dict[str, str] = {}
    with nd.Index.create(folder, recipe=recipe_of(**RECIPES[case]), engine="cpu") as index:
        while len(live) < 160:
            number = texts.random.choice([1, 2, 5, 20, 100])
            ids, some = [f"d{len(live) + i}" for i in range(number)], texts.some(number)
            index.add(table(ids, some), id_column="id", commit_every=texts.random.choice([1, 7, 1000]))
            live |= dict(zip(ids, some, strict=True))
            if texts.random.random() < 0.2:
                index.compact()
        same_as_dedup(index, live)
        same_as_dedup(index, live, keep="longest")
        same_as_dedup(index, live, cluster="components")
        for turn in range(2):
            gone = texts.random.sample(sorted(live), len(live) // 6)
            assert index.remove(gone).documents == len(gone)
            live = {id: text for id, text in live.items() if id not in gone}
            same_as_dedup(index, live)
            ids, some = [f"e{turn}-{i}" for i in range(20)], texts.some(20)
            index.add(table(ids, some), id_column="id")
            live |= dict(zip(ids, some, strict=True))
            same_as_dedup(index, live)
            index.compact()
        same_as_dedup(index, live, keep="longest")
        same_as_dedup(index, live, cluster="components")
        index.check()
    with nd.Index.open(folder, engine="cpu") as index:
        same_as_dedup(index, live)
