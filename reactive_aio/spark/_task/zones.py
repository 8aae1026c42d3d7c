"""Time zones by Spark's names for them, which are those of Java."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

NAMES: Final = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "-05:00",
    "HST": "-10:00",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "-07:00",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
    "UT": "UTC",
    "Z": "UTC",
}
"""Java's short names (``ZoneId.SHORT_IDS``), which Spark takes, and two of UTC."""
OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d?)(?::?(\d\d))?)?")


@cache
def zone_of(name: str) -> tzinfo:
    """Return the time zone of a session: a short name, a region, or an offset such as +8, UTC+8 and +08:00."""
    name = NAMES.get(name, name)
    found = OFFSET.fullmatch(name)
    if found is None:
        return ZoneInfo(name)
    sign, *parts = found.groups(default="0")
    hours, minutes, seconds = map(int, parts)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if sign == "-" else offset)
