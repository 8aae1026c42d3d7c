"""The rules of Reactive Streams 1.0.4 by number, each in one sentence."""

from __future__ import annotations

from typing import Final

RULES: Final[dict[str, str]] = {
    "1.1": "a publisher signals no more elements than its subscriber has requested",
    "1.2": "a publisher may signal fewer elements than requested and end the stream",
    "1.3": "signals to one subscriber come one after another",
    "1.4": "a publisher that fails signals on_error",
    "1.5": "a finite stream that ends well signals on_complete",
    "1.6": "after on_error or on_complete the subscription counts as cancelled",
    "1.7": "after on_error or on_complete no signal follows",
    "1.8": "after cancel the signals stop in the end",
    "1.9": "subscribe calls on_subscribe first and raises nothing but the absence of its argument",
    "1.10": "a publisher may be subscribed to many times, each time by another subscriber",
    "1.11": "a publisher chooses whether its subscribers share one stream",
    "2.1": "a subscriber receives elements only once it has requested them",
    "2.2": "a subscriber that is slow should process elements asynchronously",
    "2.3": "on_complete and on_error call no method of the subscription or the publisher",
    "2.4": "after on_complete or on_error the subscription counts as cancelled",
    "2.5": "a subscriber that has a subscription cancels any other that it is given",
    "2.6": "a subscriber that needs no more cancels its subscription",
    "2.7": "calls of request and cancel come one after another",
    "2.8": "a subscriber is ready for elements that arrive after it has cancelled",
    "2.9": "a subscriber is ready for on_complete without a preceding request",
    "2.10": "a subscriber is ready for on_error without a preceding request",
    "2.11": "a signal has arrived before its processing begins",
    "2.12": "a subscriber receives on_subscribe once at most",
    "2.13": "signals return normally, and an element, an error or a subscription is never None",
    "3.1": "request and cancel are called in the context of the subscriber",
    "3.2": "request may be called from on_subscribe and on_next",
    "3.3": "the recursion between request and on_next is bounded",
    "3.4": "request returns quickly",
    "3.5": "cancel returns quickly, from any thread, as often as one likes",
    "3.6": "request after cancel does nothing",
    "3.7": "cancel after cancel does nothing",
    "3.8": "request adds to the demand not yet met",
    "3.9": "demand must be a positive number of elements",
    "3.10": "request may call on_next before it returns",
    "3.11": "request may call on_error or on_complete before it returns",
    "3.12": "after cancel the publisher stops signalling in the end",
    "3.13": "after cancel the publisher forgets the subscriber in the end",
    "3.14": "cancel by the last subscriber may shut the publisher down",
    "3.15": "cancel returns normally",
    "3.16": "request returns normally",
    "3.17": "demand of 2**63-1 and more is unbounded",
    "4.1": "a processor keeps the contract of a subscriber and that of a publisher",
    "4.2": "a processor may recover from on_error, else it passes it on",
}


def quote(rule: str) -> str:
    """Return a rule as errors cite it, number first.

    >>> quote("2.5")
    '§2.5 a subscriber that has a subscription cancels any other that it is given'
    """
    return f"§{rule} {RULES[rule]}"
