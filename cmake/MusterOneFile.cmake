# muster_one_file(NAME): the program NAME needs no library but the C library, so that a copy of the file runs on any host of
# the same architecture whose C library isn't older (muster/launch/system/elf_needs.h finds out). The C library itself stays
# shared: names of hosts and users are looked up through plugins that belong to the host.
#
# Programs with sanitizers stay as they are: these bring libraries of their own.
function(muster_one_file name)
  if(MUSTER_SANITIZE)
    return()
  endif()
  set_target_properties(${name} PROPERTIES CXX_LINKER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/link_archives.py)
  # What nothing refers to is left out of the file where the archives' compilation permits it.
  target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc LINKER:--gc-sections)
endfunction()
