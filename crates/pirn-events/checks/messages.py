"""Parses a trace by Perfetto's own message classes: messages.py TRACE.

Each packet must have content, and no field that the classes do not know; slices must nest.
"""

import collections
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def unknown(message):
    """Returns the number of fields in a message, and in those in it, that are not known."""
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            values = [value] if hasattr(value, "ListFields") else value
            count += sum(unknown(inner) for inner in values)
    return count


trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

kinds = collections.Counter()
depths = collections.Counter()
times = collections.defaultdict(int)
for packet in trace.packet:
    kind = packet.WhichOneof("data")
    assert kind, "a packet without content"
    assert unknown(packet) == 0, f"unknown fields in {packet}"
    kinds[kind] += 1
    for event in packet.ftrace_events.event:
        kinds[event.WhichOneof("event")] += 1
        cpu = packet.ftrace_events.cpu
        assert times[cpu] <= event.timestamp, f"processor {cpu} is not in order"
        times[cpu] = event.timestamp
    event = packet.track_event
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        depths[event.track_uuid] += 1
    if event.type == TrackEvent.TYPE_SLICE_END:
        depths[event.track_uuid] -= 1
        assert depths[event.track_uuid] >= 0, "a slice ends that has not begun"
print(dict(kinds))
