"""The little of Protocol Buffers that newer kubectls send and older ones want: an OpenAPI document is written, and the
question of `kubectl auth can-i` is read."""

MAGIC = b"k8s\0"  # before a body that says of what kind it is
# Fields of SelfSubjectAccessReviewSpec's ResourceAttributes.
ATTRIBUTES = {1: "namespace", 2: "verb", 3: "group", 4: "version", 5: "resource", 6: "subresource", 7: "name"}


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """Writes a text, bytes, or a message that is written already."""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def _read_varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """Returns the last value of each field of a message: bytes or a number."""
    found, at = {}, 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == 0:
            found[key >> 3], at = _read_varint(data, at)
        elif key & 7 == 2:
            size, at = _read_varint(data, at)
            found[key >> 3], at = data[at:at + size], at + size
        else:
            raise ValueError(f"a field of the kind {key & 7} isn't read here")
    return found


def access_review(body):
    """Reads a SelfSubjectAccessReview as JSON would have it."""
    spec = fields(fields(fields(body[len(MAGIC):]).get(2, b"")).get(2, b""))
    attributes = {ATTRIBUTES[number]: value.decode() for number, value in fields(spec.get(1, b"")).items() if number in ATTRIBUTES}
    return {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "metadata": {},
            "spec": {"resourceAttributes": attributes}}
