"""Times as objects have them."""

import datetime


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def text(moment=None):
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def exact_text(moment=None):
    """With nine digits behind the point, as lines of logs have them."""
    return (moment or now()).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


def parsed(written):
    match = written.rstrip("Z")[:26]
    shape = "%Y-%m-%dT%H:%M:%S.%f" if "." in match else "%Y-%m-%dT%H:%M:%S"
    return datetime.datetime.strptime(match, shape).replace(tzinfo=datetime.timezone.utc)


def since(written):
    """Returns the seconds from a time that is written until now."""
    return (now() - parsed(written)).total_seconds()
