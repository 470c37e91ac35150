# check-length.awk - lists files and functions longer than the style guide likes (a source 400, a header 200, a
# test 500, a function 40 lines). Relies on clang-format: a function starts and ends in the same column.

function end_of_file(    limit) {
  if (file == "") return
  limit = file ~ /^tests\// ? 500 : file ~ /\.(h|hpp)$/ ? 200 : 400
  if (lines > limit) print file ": " lines " lines (" limit ")"
}

FNR == 1 {
  end_of_file()
  file = FILENAME
  start = 0
  signature = ""
}
{ lines = FNR }

# Where could a body open? In column 0 or 2, at "{" after a parameter list.
!start && /^ ? ?[^ #\/}].*\{$/ && !/^ *(namespace|class|struct|union|enum|extern|HVD_CAPABILITY)/ && /\)|const|noexcept|\]/ {
  start = FNR
  indent = match($0, /[^ ]/) - 1
  title = $0
  sub(/^ */, "", title)
  next
}
start && match($0, /[^ ]/) - 1 == indent && /^ *\}/ {
  if (FNR - start - 1 > 40) print file ":" start ": " FNR - start - 1 " lines (40): " substr(title, 1, 70)
  start = 0
}

END { end_of_file() }
