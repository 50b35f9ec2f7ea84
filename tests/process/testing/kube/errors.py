"""Answers of the API that say no, as clients know them."""


class ApiError(Exception):
    def __init__(self, code, reason, message, details=None):
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details or {}

    def status(self):
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                "reason": self.reason, "details": self.details, "code": self.code}


def _details(resource, name):
    return {"name": name, "group": resource.group, "kind": resource.plural}


def not_found(resource, name):
    return ApiError(404, "NotFound", f'{resource.key} "{name}" not found', _details(resource, name))


def exists(resource, name):
    return ApiError(409, "AlreadyExists", f'{resource.key} "{name}" already exists', _details(resource, name))


def conflict(resource, name):
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource.key} "{name}": the object has been modified; '
                    "please apply your changes to the latest version and try again", _details(resource, name))


def forbidden(resource, name, why):
    what = f'{resource.key} "{name}"' if name else resource.key
    return ApiError(403, "Forbidden", f"{what} is forbidden: {why}", _details(resource, name))


def invalid(resource, name, *causes):
    """`causes`: (field, what is wrong with it)."""
    listed = [f"{field}: {message}" for field, message in causes]
    text = listed[0] if len(listed) == 1 else "[" + ", ".join(listed) + "]"
    details = dict(_details(resource, name), kind=resource.kind,
                   causes=[{"reason": "FieldValueInvalid", "message": message, "field": field} for field, message in causes])
    return ApiError(422, "Invalid", f'{resource.kind}{"." + resource.group if resource.group else ""} "{name}" is invalid: '
                    f"{text}", details)


def bad_request(message):
    return ApiError(400, "BadRequest", message)


def no_such_path():
    return ApiError(404, "NotFound", "the server could not find the requested resource")
