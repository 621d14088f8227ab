# Zephyr's build system as documented, without its kernel: find_package(Zephyr) starts a project, sets the
# configuration as variables, and creates the library `app`, which is linked completely into zephyr.elf. The
# configuration is that of native_sim/native/64 and of the application's prj.conf, which may set only known options.
project(Zephyr-Kernel C)

set(CONFIG_ARCH_POSIX y)
set(CONFIG_64BIT y)
set(CONFIG_MAIN_STACK_SIZE 1024)
file(STRINGS ${CMAKE_SOURCE_DIR}/prj.conf lines REGEX "^CONFIG_")
foreach(line ${lines})
  string(REGEX MATCH "^([A-Z0-9_]+)=(.*)$" line ${line})
  if(NOT DEFINED ${CMAKE_MATCH_1})
    message(FATAL_ERROR "native_sim has no ${CMAKE_MATCH_1}")
  endif()
  set(${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
endforeach()

add_library(app STATIC)
target_include_directories(app PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_compile_definitions(app PRIVATE main=zephyr_main)
target_compile_options(app PRIVATE -std=gnu11 -Wall -Wextra -Werror -pedantic)

add_executable(zephyr.elf ${CMAKE_CURRENT_LIST_DIR}/kernel.c)
target_compile_definitions(zephyr.elf PRIVATE MAIN_STACK_SIZE=${CONFIG_MAIN_STACK_SIZE})
target_link_libraries(zephyr.elf PRIVATE -Wl,--whole-archive app -Wl,--no-whole-archive)
