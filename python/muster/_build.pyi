# The build writes _build.py (python/CMakeLists.txt): the torch for which the library was compiled.
TORCH_VERSION: str
TORCH_CXX11_ABI: bool
