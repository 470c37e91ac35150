# check-includes.awk - proves that #include lines in src/ point down. Files: src/CMakeLists.txt, whose hvd_module
# lines are the table, then the sources. Prints each line that breaks a rule; fails if there is one.

function complain(text) {
  print FILENAME ":" FNR ": " text
  broken = 1
}

# The module a path below src/ belongs to: the longest folder in the table.
function module_of(path,    folder) {
  folder = path
  while (sub(/\/[^\/]*$/, "", folder)) if (folder in known) return folder
  return ""
}

FILENAME ~ /CMakeLists\.txt$/ {
  if ($0 !~ /^ *hvd_([a-z]+_)?module\(/) next
  line = $0
  gsub(/^ *hvd_([a-z]+_)?module\(|\).*$/, "", line)
  count = split(line, word, " ")
  for (i = 2; i <= count; i++) allowed[word[1], word[i]] = 1
  known[word[1]] = 1
  next
}

FNR == 1 {
  own_path = FILENAME
  sub(/^src\//, "", own_path)
  own = module_of(own_path)
  if (own == "") complain("its folder is not in the table of src/CMakeLists.txt")
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
  target = $0
  gsub(/^[^"]*"|".*$/, "", target)
  if (target ~ /^horovod\//) next # the public headers
  included = module_of(target)
  if (included == "") complain("\"" target "\": write the path from src/, of a folder in the table")
  else if (included != own && !((own, included) in allowed)) complain(own " may not include " included " (\"" target "\")")
}

END { exit broken }
