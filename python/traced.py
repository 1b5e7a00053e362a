# SPDX-License-Identifier: LGPL-2.1-or-later
"""Marks of a Python program in the recordings of traced, on the same clock as the kernel's events.

    import traced

    @traced.function
    def load(path):
        with traced.scope("parse", path=path):
            ...
        traced.counter("queue", length=len(queue))

    $ tracectl record -o out.json -- python3 app.py

The marks are libtraced's: see libtraced(3) and <traced/traced.h>. While nobody records, a mark
costs about a microsecond. Nothing here raises or blocks because of the recording. Every
function may be called from any thread.

Values of arguments: None, bool, int, float, str and bytes stay what they are. A list, a tuple or a
dict becomes JSON. Anything else, and an int of more than 64 bits, becomes its str().
"""

import ctypes
import functools
import inspect
import json

__all__ = ["async_begin", "async_end", "begin", "complete", "counter", "dropped", "enabled", "end", "flow_end",
           "flow_start", "flow_step", "function", "instant", "now", "process_name", "scope", "thread_name"]

CATEGORY = "python"

# No call of the library waits, so the interpreter's lock stays held.
_library = ctypes.PyDLL("libtraced.so.1")
# struct traced_page: 0 while nobody records, below 16 if a daemon has to be looked for.
_page = ctypes.c_uint32.in_dll(_library, "traced_page")
# Not 0 while another tracer listens.
_listeners = ctypes.c_uint32.in_dll(_library, "traced_listeners")
_library.traced_now.restype = ctypes.c_uint64
_library.traced_dropped.restype = ctypes.c_uint64


class _Value(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("u", ctypes.c_uint64), ("d", ctypes.c_double), ("text", ctypes.c_char_p)]


class _Arg(ctypes.Structure):
    """struct traced_arg"""

    _fields_ = [("key", ctypes.c_char_p), ("type", ctypes.c_uint16), ("named", ctypes.c_uint16),
                ("length", ctypes.c_uint32), ("value", _Value)]


class _Id(ctypes.Structure):
    """struct traced_id"""

    _fields_ = [("kind", ctypes.c_int), ("text", ctypes.c_char_p), ("number", ctypes.c_uint64),
                ("scope", ctypes.c_char_p)]


class _Stack(ctypes.Structure):
    """struct traced_stack"""

    _fields_ = [("frame", ctypes.c_void_p), ("addresses", ctypes.c_void_p), ("count", ctypes.c_size_t)]


class _Mark(ctypes.Structure):
    """struct traced_mark. Names are given by text, not by label: labels must live for ever."""

    _fields_ = [("label", ctypes.c_void_p), ("category", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("flags", ctypes.c_uint), ("args", ctypes.POINTER(_Arg)), ("arg_count", ctypes.c_size_t),
                ("id", _Id), ("linked", _Id), ("time", ctypes.c_uint64), ("start", ctypes.c_uint64),
                ("issued", ctypes.c_uint64), ("thread_duration", ctypes.c_uint64), ("instructions", ctypes.c_uint64),
                ("stack", _Stack), ("end_stack", _Stack), ("cname", ctypes.c_char_p), ("sync_id", ctypes.c_char_p),
                ("base_type", ctypes.c_char_p), ("snapshot_category", ctypes.c_char_p)]


_library.traced_write.argtypes = [ctypes.c_char, ctypes.POINTER(_Mark)]
_library.traced_write.restype = None

# enum traced_type
_NULL, _INT, _UINT, _DOUBLE, _BOOL, _STRING, _JSON = 0, 1, 2, 3, 4, 6, 7
# enum traced_id_kind, enum traced_scope and enum traced_flags
_ID_USUAL = 4
_SCOPES = {"thread": 0, "process": 1, "global": 2}
_BIND_ENCLOSING = 1 << 2


def _bytes(text):
    if isinstance(text, bytes):
        return text
    try:
        text = str(text)
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte
        return text.encode("utf-8", "replace")
    except Exception as error:  # of the value's own str()
        return f"<{type(error).__name__}>".encode()


def _fill(arg, key, value):
    arg.key, arg.named = _bytes(key), 1
    if value is None:
        arg.type = _NULL
    elif isinstance(value, bool):
        arg.type, arg.value.u = _BOOL, value
    elif isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        arg.type, arg.value.i = _INT, value
    elif isinstance(value, int) and 0 <= value < 1 << 64:
        arg.type, arg.value.u = _UINT, value
    elif isinstance(value, float):
        arg.type, arg.value.d = _DOUBLE, value
    else:
        structured = isinstance(value, (dict, list, tuple))
        text = _bytes(json.dumps(value, default=str, skipkeys=True) if structured else value)
        arg.type, arg.value.text, arg.length = _JSON if structured else _STRING, text, len(text)


def _write(phase, name, category, args, **members):
    mark = _Mark(category=None if category is None else _bytes(category), name=None if name is None else _bytes(name),
                 **members)
    if args:
        array = (_Arg * len(args))()
        for arg, (key, value) in zip(array, args.items()):
            try:
                _fill(arg, key, value)
            except Exception as error:  # of a list that holds itself
                _fill(arg, key, f"<{type(error).__name__}>")
        mark.args, mark.arg_count = array, len(args)
    _library.traced_write(phase, mark)


def _id(number):
    return _Id(kind=_ID_USUAL, number=number)


def enabled():
    """Returns whether a mark would be written now."""
    return ((_page.value != 0 or _listeners.value != 0)
            and (_page.value >= 16 or bool(_library.traced_look())))


def now():
    """Returns the time on the clock of all marks: ns of CLOCK_BOOTTIME."""
    return _library.traced_now()


def dropped():
    """Returns how many marks this thread dropped: its ring was full, or the daemon refused it."""
    return _library.traced_dropped()


def begin(name, category=CATEGORY, /, **args):
    """Begins a slice of the thread. Slices nest."""
    if enabled():
        _write(b"B", name, category, args)


def end(**args):
    """Ends the thread's innermost slice."""
    if enabled():
        _write(b"E", None, None, args)


class scope:
    """A slice of the thread, for `with`. It ends however the block is left."""

    __slots__ = ("_name", "_category", "_args", "_began")

    def __init__(self, name, category=CATEGORY, /, **args):
        self._name, self._category, self._args = name, category, args

    def __enter__(self):
        self._began = enabled()
        if self._began:
            _write(b"B", self._name, self._category, self._args)
        return self

    def __exit__(self, *exception):
        if self._began:
            _write(b"E", None, None, {})


def function(wrapped):
    """Decorates a function: each call is a slice with the function's qualified name."""
    if inspect.iscoroutinefunction(wrapped) or inspect.isgeneratorfunction(wrapped) or inspect.isasyncgenfunction(
            wrapped):
        raise TypeError(f"{wrapped.__qualname__} can be suspended, but a thread's slices nest: "
                        "use async_begin() and async_end()")

    @functools.wraps(wrapped)
    def call(*args, **kwargs):
        with scope(wrapped.__qualname__):
            return wrapped(*args, **kwargs)

    return call


def complete(name, start, category=CATEGORY, /, **args):
    """Writes a whole slice at its end. start: now() at its beginning."""
    if enabled():
        _write(b"X", name, category, args, start=start)


def instant(name, category=CATEGORY, /, *, scope="thread", **args):
    """Marks a moment of the "thread", the "process" or, with scope="global", of the machine."""
    flags = _SCOPES[scope]
    if enabled():
        _write(b"i", name, category, args, flags=flags)


def counter(name, category=CATEGORY, /, **values):
    """Gives a counter its values: numbers. Viewers stack several values of one counter."""
    if enabled():
        _write(b"C", name, category, values)


def async_begin(name, id, category=CATEGORY, /, **args):
    """Begins an operation that moves between threads or tasks. id: a number, the same at its end."""
    if enabled():
        _write(b"b", name, category, args, id=_id(id))


def async_end(name, id, category=CATEGORY, /, **args):
    """Ends the operation of that category and id."""
    if enabled():
        _write(b"e", name, category, args, id=_id(id))


def flow_start(name, id, category=CATEGORY, /, **args):
    """Starts an arrow at the slice around this call. id: a number, the same at its steps and its end."""
    if enabled():
        _write(b"s", name, category, args, id=_id(id))


def flow_step(name, id, category=CATEGORY, /, **args):
    """Leads the arrow over the slice around this call."""
    if enabled():
        _write(b"t", name, category, args, id=_id(id))


def flow_end(name, id, category=CATEGORY, /, **args):
    """Ends the arrow at the slice around this call."""
    if enabled():
        _write(b"f", name, category, args, id=_id(id), flags=_BIND_ENCLOSING)


def process_name(name):
    """Names the process in viewers. Repeat it for each recording."""
    if enabled():
        _write(b"M", "process_name", "__metadata", {"name": name})


def thread_name(name):
    """Names the thread in viewers. Repeat it for each recording."""
    if enabled():
        _write(b"M", "thread_name", "__metadata", {"name": name})
