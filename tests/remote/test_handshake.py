"""Both ends prove that they know the secret, and nothing is believed before."""

from __future__ import annotations

import hmac

import pytest

from reactive_aio._remote.handshake import GREETING, MAGIC, REPLY, UNSEALED, Greeter, Guard, HandshakeError

SECRET, OTHER = b"s" * 32, b"o" * 32


def test_who_knows_the_secret_gets_through_byte_by_byte() -> None:
    greeter, guard = Greeter(SECRET, partition=3, attempt=1), Guard(SECRET)
    said = b"".join(guard.feed(bytes([byte])) for byte in greeter.greeting)

    assert not guard.through
    for byte in greeter.answer(said):
        assert not guard.through
        assert b"" == guard.feed(bytes([byte]))

    assert guard.through
    assert (3, 1) == (guard.partition, guard.attempt)


def test_the_guard_wants_no_byte_of_what_comes_behind() -> None:
    greeter, guard = Greeter(SECRET, 0, 0), Guard(SECRET)
    assert UNSEALED.size == guard.wants
    guard.feed(greeter.greeting[:10])
    assert UNSEALED.size - 10 == guard.wants
    guard.feed(greeter.greeting[10 : UNSEALED.size])
    assert GREETING.size - UNSEALED.size == guard.wants
    guard.feed(greeter.greeting[UNSEALED.size :])

    assert 32 == guard.wants


def test_a_worker_with_another_secret_is_found_out_by_the_guard() -> None:
    guard = Guard(SECRET)
    guard.feed(Greeter(OTHER, 0, 0).greeting)

    with pytest.raises(HandshakeError, match="secret"):
        guard.feed(b"x" * 32)
    assert not guard.through


def test_a_loop_with_another_secret_is_found_out_by_the_worker() -> None:
    greeter = Greeter(SECRET, 0, 0)

    with pytest.raises(HandshakeError, match="secret"):
        greeter.answer(Guard(OTHER).feed(greeter.greeting))


def test_one_that_knows_the_secret_is_known_by_its_greeting() -> None:
    guard, stranger = Guard(SECRET), Guard(SECRET)
    guard.feed(Greeter(SECRET, 0, 0).greeting)
    stranger.feed(Greeter(OTHER, 0, 0).greeting)

    assert (True, False) == (guard.known, guard.through)
    assert (False, False) == (stranger.known, stranger.through)


@pytest.mark.parametrize("at", range(4, GREETING.size))
def test_a_seal_is_that_of_its_greeting_alone(at: int) -> None:
    greeting, guard = bytearray(Greeter(SECRET, 0, 0).greeting), Guard(SECRET)
    greeting[at] ^= 1
    guard.feed(bytes(greeting))

    assert not guard.known


def test_not_even_the_right_proof_lets_a_stranger_in() -> None:
    greeting = Greeter(OTHER, 0, 0).greeting
    guard = Guard(SECRET)
    _, nonce, _ = REPLY.unpack(guard.feed(greeting))

    with pytest.raises(HandshakeError):
        guard.feed(hmac.digest(SECRET, b"worker" + greeting + nonce, "sha256"))


def test_the_proof_of_one_side_is_none_of_the_other() -> None:
    greeter, guard = Greeter(SECRET, 0, 0), Guard(SECRET)
    _, _, proof = REPLY.unpack(guard.feed(greeter.greeting))

    with pytest.raises(HandshakeError):
        guard.feed(proof)


def test_the_proof_of_one_connection_is_of_no_use_for_the_next() -> None:
    greeter, guard = Greeter(SECRET, 0, 0), Guard(SECRET)
    heard = greeter.answer(guard.feed(greeter.greeting))
    again = Guard(SECRET)
    again.feed(greeter.greeting)

    with pytest.raises(HandshakeError):
        again.feed(heard)


def test_the_secret_does_not_travel() -> None:
    greeter, guard = Greeter(SECRET, 0, 0), Guard(SECRET)
    reply = guard.feed(greeter.greeting)

    assert SECRET not in greeter.greeting + reply + greeter.answer(reply)
    assert "ssss" not in repr(greeter) + repr(guard)


def test_noise_is_refused_at_its_first_bytes() -> None:
    with pytest.raises(HandshakeError, match="another protocol"):
        Guard(SECRET).feed(b"GET ")


def test_another_version_is_named() -> None:
    greeter = Greeter(SECRET, 0, 0)

    with pytest.raises(HandshakeError, match="another version"):
        greeter.answer(b"rea9" + bytes(REPLY.size - len(MAGIC)))


def test_a_worker_of_another_version_is_told_of_ours_and_does_not_get_through(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(SECRET)
    with monkeypatch.context() as there:
        there.setattr("reactive_aio._remote.handshake.MAGIC", b"rea1")
        old = Greeter(SECRET, 0, 0)
    old.greeting, rest = old.greeting[: UNSEALED.size], old.greeting[UNSEALED.size :]
    reply = guard.feed(old.greeting)
    assert b"" == guard.feed(rest)  # whatever that is in the other version
    with monkeypatch.context() as there:
        there.setattr("reactive_aio._remote.handshake.MAGIC", b"rea1")
        with pytest.raises(HandshakeError, match=f"sends {MAGIC!r}, but this side sends b'rea1'"):
            old.answer(reply)

    assert b"" == guard.feed(old.answer(reply))  # the right proof, had it not minded
    assert (False, False) == (guard.known, guard.through)
