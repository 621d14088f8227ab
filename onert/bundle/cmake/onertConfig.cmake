# find_package(onert): bundles as targets of CMake. `onert_bundle --cmake-dir` prints the folder of this file.
#
#   onert_bundle(NAME MODEL [ARGUMENT...])
#
# makes a library NAME of the model's code and header; ARGUMENTs are passed on to the command onert_bundle. The target's
# property ONERT_WEIGHTS is the file of weights; with --embed-weights the weights are in the library.

find_program(ONERT_BUNDLE onert_bundle
  HINTS ${CMAKE_CURRENT_LIST_DIR}/../../../../../../bin ${CMAKE_CURRENT_LIST_DIR}/../../../../../Scripts)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(onert REQUIRED_VARS ONERT_BUNDLE)

function(onert_bundle name model)
  get_filename_component(model ${model} ABSOLUTE)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${name}_bundle)
  set(files ${out}/${name}.o ${out}/${name}.h)
  if(NOT "--embed-weights" IN_LIST ARGN)
    list(APPEND files ${out}/${name}.weights)
  endif()
  add_custom_command(
    OUTPUT ${files}
    COMMAND ${ONERT_BUNDLE} ${model} --name ${name} -o ${out} ${ARGN}
    DEPENDS ${model}
    VERBATIM)
  add_library(${name} STATIC ${files})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C ONERT_WEIGHTS ${out}/${name}.weights)
  set_source_files_properties(${out}/${name}.o PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  target_include_directories(${name} PUBLIC ${out})
  if(UNIX)
    target_link_libraries(${name} PUBLIC m)
  endif()
endfunction()
