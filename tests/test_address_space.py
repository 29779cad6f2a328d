"""What is asked for before it is taken."""

import threading

import pytest

from jitlab.support import address_space
from jitlab.support.transactions import Whole


def test_more_bytes_than_there_can_be_are_a_memory_error_that_names_them():
    with pytest.raises(MemoryError, match="a kernel takes 1,152,921,504,606,846,976 bytes"):
        address_space.ask_for(1 << 60, "a kernel")


def test_a_thread_asks_for_its_blocks_once_and_again_where_it_could_not_have_them(monkeypatch):
    asked, ended = [], []

    def ask_for(bytes, what):
        asked.append(what)
        if len(asked) == 1:
            raise MemoryError

    def go():
        for _ in range(4):
            try:
                with Whole():
                    pass
            except MemoryError as error:
                ended.append(error)

    monkeypatch.setattr(address_space, "ask_for", ask_for)
    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    assert len(asked) == 2 and len(ended) == 1
