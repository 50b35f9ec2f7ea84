"""Compares the torch that is installed with the one that the library was built for, before the library is opened.

The library is C++ code compiled against torch's headers. Opened beside another torch it would end in an undefined
symbol at best, so this says what doesn't match and what to do, in Python that needs no library."""

from __future__ import annotations

_WAYS_OUT = "install torch {wanted}.*, or build muster for this torch: `pip install .` in its folder"


def minor_of(version: str) -> str:
    """"2.13" of "2.13.0+cpu"."""
    return ".".join(version.split("+")[0].split(".")[:2])


def check(built_version: str, built_abi: bool, version: str, abi: bool) -> None:
    """Raises ImportError unless torch `version` with this ABI of C++ strings serves a library built for the other."""
    wanted = minor_of(built_version)
    ways_out = _WAYS_OUT.format(wanted=wanted)
    if minor_of(version) != wanted:
        raise ImportError(f"this muster was built for torch {built_version}, and torch {version} is installed: "
                          f"{ways_out}")
    if abi != built_abi:
        raise ImportError(f"this muster was built for a torch with _GLIBCXX_USE_CXX11_ABI={int(built_abi)}, and the "
                          f"torch {version} that is installed has {int(abi)}: {ways_out}")


def not_installed(built_version: str) -> str:
    """The message if there is no torch at all."""
    wanted = minor_of(built_version)
    return f"muster needs torch {wanted}, and no torch is installed: pip install 'torch=={wanted}.*'"


def not_opened(built_version: str, version: str, error: ImportError) -> str:
    """The message if the library can't be opened although the versions match."""
    ways_out = _WAYS_OUT.format(wanted=minor_of(built_version))
    flavour = "" if version == built_version else f" (it was built for {built_version})"
    return f"muster's library can't be opened beside torch {version}{flavour}: {error}. Way out: {ways_out}"
