"""Sealed connections between drivers and workers: what somebody on the path sees, and what he can change."""

import socket
import time

import pytest
from wiretap import SECONDS, Wire, read, tcp_pair

from horovod.runner.common.service import _guests
from horovod.runner.common.service._channel import StrangerError, welcome
from horovod.runner.common.service._guests import Guests, RecentNumbers
from horovod.runner.common.util.secret import make_secret_key

KEY = make_secret_key()
MOST = 1 << 20


@pytest.fixture
def wires():
    """Makes wires, and closes them."""
    made = []

    def make():
        made.append(Wire(KEY))
        return made[-1]

    yield make
    for wire in made:
        wire.close()


def test_nothing_can_be_read_on_the_way(wires):
    wire = wires()
    text = b"the name of a host, a pickle, a line of a rank"

    frames = [wire.taken(2, text) for _ in range(2)]
    wire.of_called.sendall(b"".join(frames))

    assert [wire.called.receive(MOST) for _ in range(2)] == [(2, text)] * 2
    for frame in frames:
        assert text[:8] not in frame
        assert not any(piece in frame for piece in (KEY, len(text).to_bytes(4, "big")))
    assert frames[0] != frames[1], "a message that comes again looks different"


def test_both_directions_have_a_key_of_their_own(wires):
    wire = wires()
    sent = wire.taken(2, b"good")
    wire.of_caller.sendall(sent)

    with pytest.raises(StrangerError, match="message 0 is not as it was sent"):
        wire.caller.receive(MOST)


@pytest.mark.parametrize("change", ["dropped", "repeated", "swapped"])
def test_messages_come_once_and_in_order(wires, change):
    wire = wires()
    first, second, third = (wire.taken(2, b"number %d" % at) for at in range(3))

    passed = {
        "dropped": [first, third],
        "repeated": [first, first],
        "swapped": [first, third, second],
    }[change]
    wire.of_called.sendall(b"".join(passed))

    assert wire.called.receive(MOST) == (2, b"number 0")
    with pytest.raises(StrangerError, match="message 1 is not as it was sent: it was changed on its way"):
        wire.called.receive(MOST)


def test_every_byte_of_a_message_is_covered(wires):
    count = len(wires().taken(2, b"body"))
    for at in range(count):
        wire = wires()
        frame = bytearray(wire.taken(2, b"body"))
        frame[at] ^= 0x80
        wire.of_called.sendall(frame)  # no more comes: a changed length must not be waited for

        with pytest.raises(StrangerError, match="is not as it was sent"):
            wire.called.receive(MOST)


def test_a_message_that_was_cut_is_an_end(wires):
    for count in (0, 10, 30):
        wire = wires()
        wire.of_called.sendall(wire.taken(2, b"body")[:count])
        wire.of_called.shutdown(socket.SHUT_WR)

        with pytest.raises(StrangerError, match=r"the connection (has )?ended"):
            wire.called.receive(MOST)


def test_who_has_the_key_cannot_make_the_other_end_take_too_much(wires):
    wire = wires()
    wire.of_called.sendall(wire.taken(2, bytes(1000)))

    with pytest.raises(StrangerError, match="announces 1000 bytes, at most 999 are taken"):
        wire.called.receive(999)


def test_a_deadline_is_for_all_of_a_message(wires):
    wire = wires()
    wire.of_called.sendall(wire.taken(2, b"body")[:-1])

    begin = time.monotonic()
    with pytest.raises(StrangerError, match="only 19 of 20 bytes came in time"):
        wire.called.receive(MOST, begin + 0.2)

    assert 0.2 <= time.monotonic() - begin < SECONDS


def test_a_recorded_greeting_gets_no_byte(wires):
    hello = wires().heard[:64]
    recent = RecentNumbers()

    answers = []
    for _ in range(2):
        ours, theirs = tcp_pair()
        ours.sendall(hello)
        with theirs, ours:
            try:
                welcome(theirs, KEY, time.monotonic() + SECONDS, recent)
            except StrangerError as error:
                answers.append(str(error))
                theirs.shutdown(socket.SHUT_WR)
            answers.append(len(read(ours, 64)))

    # The first is the recording that somebody else's server has never seen.
    assert answers == [64, "the other end repeats an old greeting", 0]


def test_some_greetings_are_remembered_and_memory_is_bounded():
    recent = RecentNumbers()
    numbers = [at.to_bytes(32, "big") for at in range(_guests._MOST_NUMBERS + 1)]

    assert all(recent.add(number) for number in numbers)
    assert not any(recent.add(number) for number in numbers[1:])
    assert recent.add(numbers[0]), "the oldest was forgotten"


@pytest.fixture
def visits():
    """Connections, each of which says who has ended it."""
    pairs = [tcp_pair() for _ in range(6)]
    yield [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    for connection in (one for pair in pairs for one in pair):
        connection.close()


def test_only_those_who_have_not_proven_themselves_make_room(visits):
    ours, theirs = visits
    guests = Guests(2)

    assert guests.add(ours[0], "a")
    guests.stay(ours[0])
    assert guests.add(ours[1], "a")
    assert guests.add(ours[2], "a")
    assert read(theirs[1], 1) == b"", "the only silent one had to go"
    guests.stay(ours[2])
    guests.remove(ours[1])
    assert not guests.add(ours[3], "a"), "there is room for two"
    guests.remove(ours[0])
    assert guests.add(ours[3], "a")


def test_one_host_cannot_crowd_out_the_others(visits):
    ours, theirs = visits
    guests = Guests(3)

    for connection, host in zip(ours, "abbbbb", strict=True):
        assert guests.add(connection, host)

    assert [read(connection, 1) for connection in theirs[1:4]] == [b""] * 3
    theirs[0].setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs[0].recv(1)
