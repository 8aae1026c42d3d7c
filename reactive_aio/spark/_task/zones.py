"""Time zones by Spark's names for them, which are those of Java."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .retyping import retyped

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
        try:
            return ZoneInfo(name)
        except ZoneInfoNotFoundError as error:  # Java has SystemV/PST8 and the like besides
            raise ValueError(
                f"spark.sql.session.timeZone is {name!r}, which Python's zoneinfo does not know. Set it to a region, such as "
                "Europe/Berlin, or to an offset, such as +01:00. If it is a region, install the package tzdata"
            ) from error
    sign, *parts = found.groups(default="0")
    hours, minutes, seconds = map(int, parts)
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return timezone(-offset if sign == "-" else offset)


def in_zone(batch: Any, zone: str) -> Any:
    """Return a batch whose times are to be shown in a zone. They are instants, and so stay the same."""
    import pyarrow as pa

    arrow: Any = pa  # whose stubs know batches by halves
    fields = [each.with_type(_in_zone(each.type, zone)) for each in batch.schema]
    pairs = list(zip(batch.columns, fields, strict=True))
    if all(column.type == field.type for column, field in pairs):
        return batch
    columns = [retyped(column, field.type) for column, field in pairs]
    return arrow.RecordBatch.from_arrays(columns, schema=arrow.schema(fields))


def _in_zone(type_: Any, zone: str) -> Any:
    """Return a type with the zone at each of its times, however deep."""
    import pyarrow as pa

    types: Any = pa.types
    if types.is_timestamp(type_):
        return pa.timestamp(type_.unit, zone) if type_.tz is not None else type_
    if types.is_struct(type_):
        return pa.struct([each.with_type(_in_zone(each.type, zone)) for each in type_])
    if types.is_map(type_):
        item = type_.item_field
        key, value = _in_zone(type_.key_type, zone), _in_zone(item.type, zone)
        # Arrow does not make every type of a map anew, as that of map().
        if key == type_.key_type and value == item.type:
            return type_
        return pa.map_(key, item.with_type(value))
    if types.is_list(type_):
        item = type_.value_field
        return pa.list_(item.with_type(_in_zone(item.type, zone)))
    return type_
