# The target Pirn::pirn: what is linked with it has virtual threads.
#
#     find_package(Pirn REQUIRED)
#     target_link_libraries(server PRIVATE Pirn::pirn)
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_pirn_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Pirn::pirn)
  add_library(Pirn::shared SHARED IMPORTED)
  set_target_properties(Pirn::shared PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../libpirn.so.0"
    IMPORTED_SONAME "libpirn.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_pirn_prefix}/include")
  # A program may refer to none of the library's names, and yet needs it.
  add_library(Pirn::pirn INTERFACE IMPORTED)
  set_target_properties(Pirn::pirn PROPERTIES
    INTERFACE_LINK_LIBRARIES
    "-Wl,--push-state,--no-as-needed;Pirn::shared;-Wl,--pop-state;Threads::Threads")
endif()
unset(_pirn_prefix)
