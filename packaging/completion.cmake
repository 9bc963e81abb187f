# Shell completion is what `aster completion SHELL` prints, so it cannot differ from the program's own command table.
function(aster_completion shell file directory)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/completion/${file})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/completion)
  add_custom_command(OUTPUT ${output} COMMAND sh -c "'$<TARGET_FILE:aster_cli>' completion ${shell} >'${output}'" DEPENDS aster_cli VERBATIM)
  set_property(GLOBAL APPEND PROPERTY ASTER_COMPLETIONS ${output})
  install(FILES ${output} DESTINATION ${CMAKE_INSTALL_DATADIR}/${directory} COMPONENT runtime)
endfunction()

aster_completion(bash aster bash-completion/completions)
aster_completion(zsh _aster zsh/vendor-completions)
aster_completion(fish aster.fish fish/vendor_completions.d)
get_property(completions GLOBAL PROPERTY ASTER_COMPLETIONS)
add_custom_target(aster_completions ALL DEPENDS ${completions})
