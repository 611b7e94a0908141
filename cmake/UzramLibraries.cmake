# Lets TARGET use the library with the pkg-config name MODULE and the header HEADER; OUT says whether it
# was found. When cross compiling, only its headers are used: a static library needs no others, and this
# machine's are of another architecture.
function(uzram_use_library TARGET OUT MODULE HEADER)
  if(CMAKE_CROSSCOMPILING)
    find_path(UZRAM_${MODULE}_INCLUDE ${HEADER} PATHS /usr/include)
    if(UZRAM_${MODULE}_INCLUDE)
      # After the target's own headers, which the folder may hold too, in this machine's version.
      target_compile_options(${TARGET} PRIVATE "SHELL:-idirafter ${UZRAM_${MODULE}_INCLUDE}")
      set(${OUT} TRUE PARENT_SCOPE)
      return()
    endif()
  else()
    pkg_check_modules(UZRAM_${MODULE} IMPORTED_TARGET ${MODULE})
    if(UZRAM_${MODULE}_FOUND)
      target_link_libraries(${TARGET} PRIVATE PkgConfig::UZRAM_${MODULE})
      set(${OUT} TRUE PARENT_SCOPE)
      return()
    endif()
  endif()
  set(${OUT} FALSE PARENT_SCOPE)
endfunction()
